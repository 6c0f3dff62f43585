import { describe, expect, test } from 'bun:test'
import { filterProgram, type SyscallName, syscallNumbers } from './seccomp.ts'

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x00050001
const ENOSYS = 0x00050026

type Call = { readonly number: number; readonly arch?: number; readonly words?: readonly (number | bigint)[] }

/** Implements the part of the kernel's interpreter that the program uses. */
function judge(program: Uint8Array, { number, arch = 0xc000003e, words = [] }: Call): number {
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, number, true)
  data.setUint32(4, arch, true)
  for (const [at, word] of words.entries()) data.setBigUint64(16 + at * 8, BigInt.asUintN(64, BigInt(word)), true)
  const code = new DataView(program.buffer)
  let value = 0
  for (let at = 0; at * 8 < program.length; at++) {
    const [operation, yes, no, k] = [
      code.getUint16(at * 8, true),
      code.getUint8(at * 8 + 2),
      code.getUint8(at * 8 + 3),
      code.getUint32(at * 8 + 4, true),
    ]
    if (operation === 0x06) return k
    else if (operation === 0x20) value = data.getUint32(k, true)
    else if (operation === 0x54) value = (value & k) >>> 0
    else if (operation === 0x15) at += value === k ? yes : no
    else if (operation === 0x35) at += value >= k ? yes : no
    else if (operation === 0x45) at += (value & k) !== 0 ? yes : no
    else throw new Error(`unknown operation ${operation}`)
  }
  throw new Error('the program has no end')
}

const machines = [
  { arch: 'x64', audit: 0xc000003e, column: 0 },
  { arch: 'arm64', audit: 0xc00000b7, column: 1 },
] as const

for (const { arch, audit, column } of machines) {
  const closed = filterProgram({ arch, inet: true, unix: false })
  const verdict = (name: SyscallName, ...words: readonly (number | bigint)[]) =>
    judge(closed, { number: syscallNumbers[name][column], arch: audit, words })
  const judged = new Set<SyscallName>([
    ...(['clone', 'clone3', 'ioctl', 'socket', 'socketpair', 'mknod', 'mknodat'] as const),
    ...(['open', 'openat', 'openat2', 'creat', 'chmod', 'fchmod', 'fchmodat', 'fchmodat2'] as const),
  ])
  const names = Object.keys(syscallNumbers).filter((name): name is SyscallName => name in syscallNumbers)
  const here = names.filter((name) => syscallNumbers[name][column] >= 0)

  describe(arch, () => {
    test.each(here.filter((name) => !judged.has(name)))('%s is refused', (name) => expect(verdict(name)).toBe(EPERM))

    test('every other call that is known is allowed', () => {
      const refused = new Set(here.map((name): number => syscallNumbers[name][column]))
      const known = [...Array(column === 0 ? 335 : 295).keys(), ...Array.from({ length: 44 }, (_, at) => 424 + at)]
      for (const number of known.filter((number) => !refused.has(number))) expect(judge(closed, { number, arch: audit })).toBe(ALLOW)
    })

    test('a call that nobody knew when the list was made seems not to exist', () => {
      for (const number of [column === 0 ? 335 : 295, 400, 423, 468, 470, 5_000, 0x3fffffff])
        expect(judge(closed, { number, arch: audit })).toBe(ENOSYS)
    })

    test('calls of another architecture end the process', () => expect(judge(closed, { number: 1, arch: 0x40000003 })).toBe(KILL))

    test('a new process is allowed, a new namespace is not', () => {
      expect(verdict('clone3')).toBe(ENOSYS)
      expect(verdict('clone', 0x01200011)).toBe(ALLOW)
      for (const flag of [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
        expect(verdict('clone', 0x11 | flag)).toBe(EPERM)
    })

    test('terminal input cannot be forged, whatever the unused upper half of the request says', () => {
      expect(verdict('ioctl', 0, 0x5412)).toBe(EPERM)
      expect(verdict('ioctl', 0, 0xdeadbeef00005412n)).toBe(EPERM)
      expect(verdict('ioctl', 0, 0x5401)).toBe(ALLOW)
    })

    test('of sockets only the internet and routing are left', () => {
      for (const family of [2, 10]) expect(verdict('socket', family, 1, 0)).toBe(ALLOW)
      expect(verdict('socket', 16, 3, 0)).toBe(ALLOW)
      expect(verdict('socket', 16, 3, 12)).toBe(EPERM)
      for (const family of [0, 1, 17, 38, 40, 44]) expect(verdict('socket', family, 1, 0)).toBe(EPERM)
    })

    test('named local sockets come with the network, internet sockets go with it', () => {
      const ask = (program: Uint8Array, family: number) =>
        judge(program, { number: syscallNumbers.socket[column], arch: audit, words: [family, 1, 0] })
      expect(ask(filterProgram({ arch, inet: true, unix: true }), 1)).toBe(ALLOW)
      expect(ask(filterProgram({ arch, inet: false, unix: false }), 2)).toBe(EPERM)
      expect(ask(filterProgram({ arch, inet: false, unix: false }), 10)).toBe(EPERM)
    })

    test('stream and seqpacket pairs stay, datagram pairs could reach any named socket', () => {
      const cloexec = 0o2000000
      for (const type of [1, 5, 1 | cloexec, 5 | cloexec]) expect(verdict('socketpair', 1, type, 0)).toBe(ALLOW)
      for (const type of [2, 3, 2 | cloexec]) expect(verdict('socketpair', 1, type, 0)).toBe(EPERM)
      const open = filterProgram({ arch, inet: true, unix: true })
      expect(judge(open, { number: syscallNumbers.socketpair[column], arch: audit, words: [1, 2, 0] })).toBe(ALLOW)
    })

    /** The index of the mode argument, and the arguments before it. */
    const modes: readonly (readonly [name: SyscallName, before: readonly number[]])[] = [
      ['chmod', [0]],
      ['fchmod', [0]],
      ['fchmodat', [0, 0]],
      ['fchmodat2', [0, 0]],
      ['creat', [0]],
      ['mknod', [0]],
      ['mknodat', [0, 0]],
      ['open', [0, 0o100]],
      ['openat', [0, 0, 0o100]],
      ['open', [0, 0o20200002]],
      ['openat', [0, 0, 0o20040002]],
    ]
    test.each(modes.filter(([name]) => syscallNumbers[name][column] >= 0))(
      '%s sets no set-user-ID bit, alone or with others',
      (name, before) => {
        const high = 0xdeadbeef00000000n
        for (const mode of [0o4000, 0o4755, 0o6755, 0o5777, 0o104755]) {
          expect(verdict(name, ...before, mode)).toBe(EPERM)
          expect(verdict(name, ...before, high | BigInt(mode))).toBe(EPERM)
        }
        for (const mode of [0, 0o644, 0o755, 0o1777, 0o100644]) expect(verdict(name, ...before, mode)).toBe(ALLOW)
        expect(verdict(name, ...before, 0o2755)).toBe(name.includes('chmod') ? ALLOW : EPERM)
      },
    )

    test('an opening call that makes nothing has no mode, and one whose mode cannot be seen is sent back to openat', () => {
      if (syscallNumbers.open[column] >= 0) expect(verdict('open', 0, 0o2, 0o6755)).toBe(ALLOW)
      expect(verdict('openat', 0, 0, 0o2002, 0o6755)).toBe(ALLOW)
      expect(verdict('openat2', 0, 0, 0, 24)).toBe(ENOSYS)
    })

    test('FIFOs and files can be made, devices cannot', () => {
      for (const mode of [0o010644, 0o100644, 0o644]) expect(verdict('mknodat', 0, 0, mode)).toBe(ALLOW)
      for (const mode of [0o020666, 0o060666]) expect(verdict('mknodat', 0, 0, mode)).toBe(EPERM)
    })
  })
}

test('on x86_64 the calls of its 32-bit pointer mode are refused', () => {
  expect(judge(filterProgram({ arch: 'x64', inet: true, unix: false }), { number: 0x40000000 + 101 })).toBe(EPERM)
})
