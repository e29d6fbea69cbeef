package vfs

import "io/fs"

// Owner has no ids to give: Windows has access control lists.
func Owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
