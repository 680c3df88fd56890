# coll_train; links libcoll.la only
