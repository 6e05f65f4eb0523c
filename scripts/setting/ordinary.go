//go:build !race && !audit

package setting

// thorough says that a build looks closer than usual.
const thorough = false
