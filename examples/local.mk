# programs to begin with; they use the public header only
noinst_PROGRAMS += %D%/hello
examples_hello_LDADD = libcoll.la
EXTRA_DIST += %D%/python/average.py %D%/python/ddp_resnet18.py \
	%D%/python/deepspeed_cnn.py %D%/python/horovod_elastic.py %D%/python/horovod_keras.py \
	%D%/python/horovod_mnist.py %D%/python/train_torch.py
