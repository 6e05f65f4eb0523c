package ingress

import "syscall"

// setNice sets the priority of the calling thread. A failure is ignored: the pool is then as fast
// as its surroundings, not wrong.
func setNice(nice int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice) }
