/** Builds the system-call filter as the bytes of a classic BPF program for the kernel. */

/** Maps each call that the filter judges to its numbers [x86_64, aarch64]; -1 where the architecture has no such call. */
export const syscallNumbers = {
  // other processes' memory and files
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  // mounts and namespaces
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  unshare: [272, 97],
  setns: [308, 268],
  // kernel interfaces with a history of security bugs
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  fanotify_init: [300, 262],
  open_by_handle_at: [304, 265],
  // the machine itself
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  vhangup: [153, 58],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, -1],
  ioperm: [173, -1],
  modify_ldt: [154, -1],
  uselib: [134, -1],
  lookup_dcookie: [212, 18],
  // judged by their arguments
  clone: [56, 220],
  clone3: [435, 435],
  ioctl: [16, 29],
  socket: [41, 198],
  socketpair: [53, 199],
  mknod: [133, -1],
  mknodat: [259, 33],
  open: [2, -1],
  openat: [257, 56],
  openat2: [437, 437],
  creat: [85, -1],
  chmod: [90, -1],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: [452, 452],
} as const satisfies { readonly [name: string]: readonly [number, number] }

export type SyscallName = keyof typeof syscallNumbers

/** `inet`: allow internet sockets, because the network namespace is closed anyway. `unix`: allow named local sockets too. */
type FilterQuestion = { readonly arch: 'x64' | 'arm64'; readonly inet: boolean; readonly unix: boolean }

type Instruction = { readonly code: number; readonly yes?: number; readonly no?: number; readonly k: number }

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x00050001
const ENOSYS = 0x00050026

const archs = { x64: 0xc000003e, arm64: 0xc00000b7 } as const

/** Mount, cgroup, UTS, IPC, user, PID and network namespaces. (Time namespaces have no bit in `clone`.) */
const NEW_NAMESPACES = 0x7e020000
/** Requests that push characters into a terminal's input, paste its selection, or change its line discipline. */
const TERMINAL_REQUESTS = [0x5412, 0x541c, 0x5423]
const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16]

/** Mode bits of a program that runs with the rights of its owner or its group, for every user. */
const SET_USER = 0o4000
const SET_USER_OR_GROUP = 0o6000
/** An opening call has a mode only with one of these flags (the second stands for O_TMPFILE). */
const MAKES_A_FILE = 0o100 | 0o20000000

/** Calls that are refused with any arguments. */
const refused: readonly SyscallName[] = [
  'ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp',
  'mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr unshare setns',
  'add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register fanotify_init open_by_handle_at',
  'kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd syslog vhangup',
  'settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm modify_ldt uselib lookup_dcookie',
].flatMap((line) => line.split(' ').filter((name): name is SyscallName => name in syscallNumbers))

/**
 * Calls that did not exist, or had another meaning, when this list was made: the filter cannot judge them, and programs fall back to an older
 * call when the kernel seems not to have one. `gap` lies between the numbers of each architecture and those that all share since 2019.
 */
const unknown = { x64: { gap: 335, shared: 424 }, arm64: { gap: 295, shared: 424 }, above: 467 } as const

/**
 * Allows every known call that is not listed here: namespaces and mounts are the main protection, and this filter closes the calls that the
 * kernel still allows to everyone. A call of another architecture (32-bit) ends the process, because its numbers mean other calls.
 */
export function filterProgram(question: FilterQuestion): Uint8Array {
  const column = question.arch === 'x64' ? 0 : 1
  const rules = rulesFor(question)
    .map(({ name, verdict }) => ({ number: syscallNumbers[name][column], verdict }))
    .filter(({ number }) => number >= 0)
    .toSorted((a, b) => a.number - b.number)
  return bytes([
    load(4),
    ...when(archs[question.arch], [], [give(KILL)]),
    load(0),
    ...(question.arch === 'x64' ? [{ code: 0x35, yes: 0, no: 1, k: 0x40000000 }, give(EPERM)] : []),
    ...from(unknown.above + 1, [give(ENOSYS)]),
    ...from(unknown[question.arch].gap, [{ code: 0x35, yes: 1, no: 0, k: unknown[question.arch].shared }, give(ENOSYS)]),
    ...search(rules),
  ])
}

type Rule<Call> = Call & { readonly verdict: readonly Instruction[] }

/** Every rule ends in a verdict, because the rule overwrites the call number in the accumulator. */
function rulesFor(question: FilterQuestion): Rule<{ readonly name: SyscallName }>[] {
  return [
    ...refused.map((name) => ({ name, verdict: [give(EPERM)] })),
    // The arguments of these calls lie in memory, where the filter cannot read them: programs fall back to clone and openat.
    { name: 'clone3', verdict: [give(ENOSYS)] },
    { name: 'openat2', verdict: [give(ENOSYS)] },
    { name: 'clone', verdict: [argument(0), ...whenAny(NEW_NAMESPACES, [give(EPERM)]), give(ALLOW)] },
    { name: 'ioctl', verdict: [argument(1), ...TERMINAL_REQUESTS.flatMap((k) => when(k, [give(EPERM)])), give(ALLOW)] },
    { name: 'socket', verdict: socketRule(question) },
    { name: 'socketpair', verdict: question.unix ? [give(ALLOW)] : pairRule() },
    { name: 'mknod', verdict: [...without(SET_USER_OR_GROUP, 1), ...deviceRule(1)] },
    { name: 'mknodat', verdict: [...without(SET_USER_OR_GROUP, 2), ...deviceRule(2)] },
    { name: 'open', verdict: openRule({ flags: 1, mode: 2 }) },
    { name: 'openat', verdict: openRule({ flags: 2, mode: 3 }) },
    { name: 'creat', verdict: [...without(SET_USER_OR_GROUP, 1), give(ALLOW)] },
    // The set-group bit is allowed: folders commonly use it, and the filter cannot tell a folder from a file (left-rights.ts can).
    { name: 'chmod', verdict: [...without(SET_USER, 1), give(ALLOW)] },
    { name: 'fchmod', verdict: [...without(SET_USER, 1), give(ALLOW)] },
    { name: 'fchmodat', verdict: [...without(SET_USER, 2), give(ALLOW)] },
    { name: 'fchmodat2', verdict: [...without(SET_USER, 2), give(ALLOW)] },
  ]
}

/** Uses binary search: the kernel runs a new filter once for every call it knows, so each command would pay for a linear list. */
function search(rules: readonly Rule<{ readonly number: number }>[]): Instruction[] {
  if (rules.length <= 3) return [...rules.flatMap(({ number, verdict }) => when(number, verdict)), give(ALLOW)]
  const middle = rules.length >> 1
  const [low, high] = [search(rules.slice(0, middle)), search(rules.slice(middle))]
  return [{ code: 0x35, yes: low.length, no: 0, k: rules[middle]?.number ?? 0 }, ...low, ...high]
}

/** Allows a list of families: AF_VSOCK reaches the hypervisor and AF_ALG old kernel code. Netlink allows only routing (0). */
function socketRule({ inet, unix }: FilterQuestion): Instruction[] {
  const families = [...(unix ? [AF_UNIX] : []), ...(inet ? [AF_INET, AF_INET6] : [])]
  return [
    argument(0),
    ...families.flatMap((family) => when(family, [give(ALLOW)])),
    ...when(AF_NETLINK, [argument(2), ...when(0, [give(ALLOW)])]),
    give(EPERM),
  ]
}

/** A pair of datagram sockets could still send to any named socket; stream and seqpacket pairs reach only each other. */
function pairRule(): Instruction[] {
  return [argument(1), and(0xf), ...[1, 5].flatMap((type) => when(type, [give(ALLOW)])), give(EPERM)]
}

/** Refuses character and block devices; FIFOs and files stay allowed. */
function deviceRule(mode: number): Instruction[] {
  return [argument(mode), and(0xf000), ...[0x2000, 0x6000].flatMap((type) => when(type, [give(EPERM)])), give(ALLOW)]
}

/** Refuses a mode with one of these bits; otherwise continues with the next instruction. */
function without(bits: number, mode: number): Instruction[] {
  return [argument(mode), ...whenAny(bits, [give(EPERM)])]
}

function openRule({ flags, mode }: { readonly flags: number; readonly mode: number }): Instruction[] {
  return [argument(flags), ...whenAny(MAKES_A_FILE, without(SET_USER_OR_GROUP, mode)), give(ALLOW)]
}

/** Continues with `then` for this number and every higher one. */
function from(k: number, then: readonly Instruction[]): Instruction[] {
  return [{ code: 0x35, yes: 0, no: then.length, k }, ...then]
}

function whenAny(bits: number, then: readonly Instruction[]): Instruction[] {
  return [{ code: 0x45, yes: 0, no: then.length, k: bits }, ...then]
}

function when(k: number, then: readonly Instruction[], otherwise: readonly Instruction[] = []): Instruction[] {
  if (then.length === 0) return [{ code: 0x15, yes: otherwise.length, no: 0, k }, ...otherwise]
  return [{ code: 0x15, yes: 0, no: then.length, k }, ...then, ...otherwise]
}

const load = (offset: number): Instruction => ({ code: 0x20, k: offset })
/** Loads the low half: the kernel reads every argument judged here as an int. */
const argument = (index: number): Instruction => load(16 + 8 * index)
const and = (k: number): Instruction => ({ code: 0x54, k })
const give = (k: number): Instruction => ({ code: 0x06, k })

/** Jumps are one byte wide: a longer jump would silently lead to a wrong instruction. */
function bytes(program: readonly Instruction[]): Uint8Array {
  if (program.some(({ yes = 0, no = 0 }) => yes > 255 || no > 255)) throw new Error('the system-call filter has a jump that is too long')
  const view = new DataView(new ArrayBuffer(program.length * 8))
  program.forEach(({ code, yes = 0, no = 0, k }, at) => {
    view.setUint16(at * 8, code, true)
    view.setUint8(at * 8 + 2, yes)
    view.setUint8(at * 8 + 3, no)
    view.setUint32(at * 8 + 4, k, true)
  })
  return new Uint8Array(view.buffer)
}
