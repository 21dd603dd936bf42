//go:build !unix

package trust

import "io/fs"

// NoFollow and NonBlock are no flags here.
const NoFollow, NonBlock = 0, 0

func owner(fs.FileInfo) (uid, gid int, known bool) { return 0, 0, false }
