# Manual pages, which make writes in mdoc(7): coll_*(3) and libcoll(7) from the comments of
# coll.h, coll-variables(7) from the table of lib/util/param.h, and section 1 from what each
# program says to --help.  When cross compiling, programs cannot run here: section 1 then
# is what the tarball has, or pages that point to --help.

# what the pages show as their date
manual_date = November 26, 2026

manual = $(srcdir)/%D%/man
manual_awk = $(AWK) -v date="$(manual_date)" -v out=%D%/man -f $(manual)/mdoc.awk
manual_stamps = %D%/man/functions.stamp %D%/man/variables.stamp %D%/man/programs.stamp
CLEANFILES += $(manual_stamps)
EXTRA_DIST += %D%/man/mdoc.awk %D%/man/functions.awk %D%/man/variables.awk \
	%D%/man/program.awk %D%/man/programs %D%/man/html %D%/man/manual.css

%D%/man/functions.stamp: $(collinclude_HEADERS) %D%/man/mdoc.awk %D%/man/functions.awk
	$(AM_V_GEN)rm -rf %D%/man/man3 && $(MKDIR_P) %D%/man/man3 %D%/man/man7 && \
	$(manual_awk) -f $(manual)/functions.awk $(srcdir)/include/coll/coll.h \
		$(srcdir)/include/coll/cuda.h > $@.links && \
	while read link page; do \
		ln -s $$page %D%/man/man3/$$link || exit 1; \
	done < $@.links && mv $@.links $@

%D%/man/variables.stamp: lib/util/param.h %D%/man/mdoc.awk %D%/man/variables.awk
	$(AM_V_GEN)$(MKDIR_P) %D%/man/man7 && \
	$(manual_awk) -f $(manual)/variables.awk $(srcdir)/lib/util/param.h && touch $@

%D%/man/programs.stamp: $(bin_PROGRAMS) %D%/man/mdoc.awk %D%/man/program.awk %D%/man/programs
	$(AM_V_GEN)rm -rf %D%/man/man1 && $(MKDIR_P) %D%/man/man1 && \
	AWK="$(AWK)" DATE="$(manual_date)" CROSS=$(cross_compiling) \
		$(SHELL) $(manual)/programs $(manual) $(bin_PROGRAMS) && touch $@

all-local: $(manual_stamps)

install-data-local: $(manual_stamps)
	@for page in %D%/man/man?/*; do \
		folder=$${page#%D%/man/}; folder="$(DESTDIR)$(mandir)/$${folder%/*}"; \
		$(MKDIR_P) "$$folder" && rm -f "$$folder/$${page##*/}" && \
		cp -P $$page "$$folder" || exit 1; \
	done

uninstall-local: $(manual_stamps)
	@for page in %D%/man/man?/*; do \
		rm -f "$(DESTDIR)$(mandir)/$${page#%D%/man/}"; \
	done

# the same as HTML, in doc/html
html-local: $(manual_stamps)
	$(SHELL) $(manual)/html $(manual) %D%/man %D%/html

dist-hook: %D%/man/programs.stamp
	$(MKDIR_P) $(distdir)/%D%/man/man1 && cp %D%/man/man1/* $(distdir)/%D%/man/man1

mostlyclean-local:
	rm -rf %D%/man/man1 %D%/man/man3 %D%/man/man7 %D%/html

# for tests/tools/manual.sh
.PHONY: list-installed
list-installed:
	@echo $(bin_PROGRAMS)
