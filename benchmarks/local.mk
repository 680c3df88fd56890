# one driver, one file an operation; links libcoll.la only
