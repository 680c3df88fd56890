# coll_info, collrun
