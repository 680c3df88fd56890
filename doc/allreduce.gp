# SPDX-License-Identifier: BSD-3-Clause
# allreduce.gp - draw README.md's picture from a result of benchmarks/compare:
#
#   gnuplot -e "result='FILE.txt'" doc/allreduce.gp > doc/allreduce.svg
#
# The columns of a row are: ranks, collective, bytes, then each library's time in us,
# of which Open MPI has three settings.  The fastest of the three is drawn.
set terminal svg size 960,400 background rgb 'white' font 'sans,13'
rows(ranks) = sprintf("< awk '$1==%d && $2==\"allreduce\" { " . \
    "n = $3+0; if ($3 ~ /K/) n *= 1024; if ($3 ~ /M/) n *= 1048576; " . \
    "m = $6<$7 ? $6 : $7; m = m<$8 ? m : $8; " . \
    "print n, $4, m, $9, $10 }' %s", ranks, result)

set multiplot layout 1,2 title \
    "allreduce of f32 on 2 cores of an AMD EPYC: time of one call (less is better)"
set logscale x 2
set logscale y 10
set format y '%.0s %cs'
set xtics ('8 B' 8, '128 B' 128, '2 KiB' 2048, '32 KiB' 32768, \
    '512 KiB' 524288, '8 MiB' 8388608, '64 MiB' 67108864) rotate by -35
set yrange [5e-8:1]
set grid
set xrange [8:67108864]
set key below samplen 2
set bmargin 7
do for [ranks in "2 8"] {
    set title ranks . ' ranks'
    file = rows(int(ranks))
    plot file using 1:($5*1e-6) with linespoints lc rgb '#8c8c8c' pt 7 ps 0.4 title 'Gloo', \
         file using 1:($4*1e-6) with linespoints lc rgb '#9467bd' pt 7 ps 0.4 title 'MPICH', \
         file using 1:($3*1e-6) with linespoints lc rgb '#1f77b4' pt 7 ps 0.4 \
              title 'Open MPI (best of 3)', \
         file using 1:($2*1e-6) with linespoints lc rgb 'black' lw 2.5 pt 7 ps 0.5 title 'libcoll'
}
unset multiplot
