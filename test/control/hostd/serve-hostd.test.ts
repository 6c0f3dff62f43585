/** The daemon itself: who may connect, whose socket it is, how it ends, and what it leaves. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { given, needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { echo, exchange, operation, place, runs, signal } from './hostd-daemon.ts'

const asRoot = test.if(given(process.getuid?.() === 0, 'root') && needs('setpriv', 'python3'))
const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--']

/** A client written after the protocol alone. */
const python = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
except OSError as error:
    print("connect:", error.strerror)
    sys.exit(0)
try:
    for line in sys.argv[2:]:
        s.sendall((line + "\\n").encode())
    s.shutdown(socket.SHUT_WR)
except OSError:
    pass  # refused: what it said can still be read
sys.stdout.write(s.makefile().read())
`

function foreign(socket: string, lines: readonly string[], through: readonly string[] = []): string {
  const { stdout, stderr } = Bun.spawnSync([...through, 'python3', '-c', python, socket, ...lines], { env: { PATH: '/usr/bin:/bin' } })
  return `${stdout}${stderr}`
}

describe('who may connect', () => {
  asRoot('another user is kept out by the mode of the socket', async () => {
    using at = place()
    await at.start()
    expect(statSync(at.socket).mode & 0o777).toBe(0o660)
    expect(foreign(at.socket, ['{"op":"disk-usage"}'], nobody)).toBe('connect: Permission denied\n')
  })

  asRoot('another user that the mode lets in is refused by the kernel’s word about it, with a receipt', async () => {
    using at = place()
    await at.start()
    chmodSync(at.socket, 0o666)
    const reply = JSON.parse(foreign(at.socket, ['{"op":"disk-usage"}'], nobody))
    expect(reply).toMatchObject({ ok: false, output: '', exitCode: null, error: { code: 'forbidden' } })
    expect(reply.error.message).toContain('user 65534')
    expect(await at.receipts()).toMatchObject([{ tool: 'hostd.connect', status: 'denied' }])
  })

  asRoot('a member of the group connects, also by a supplementary group', async () => {
    using at = place()
    await at.start('--group', 'games')
    expect(statSync(at.socket)).toMatchObject({ gid: 60, mode: 0o140660 })
    const member = ['setpriv', '--reuid=65534', '--regid=65534', '--groups=60', '--']
    expect(JSON.parse(foreign(at.socket, ['{"id":"a","op":"disk-usage"}'], member))).toMatchObject({ id: 'a', ok: true, exitCode: 0 })
    expect(foreign(at.socket, ['{"op":"disk-usage"}'], nobody)).toBe('connect: Permission denied\n')
  })

  test('a wrong or missing token is refused before anything else is told', async () => {
    using at = place()
    const sum = new Bun.CryptoHasher('sha256').update('right').digest('hex')
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(`[server]\ntoken_sha256 = "${sum}"\n${operation('say', { argv: [at.script('echo', echo), 'hi'] })}`),
    )
    const replies = await hostd.ask({ op: 'say' }, { op: 'nothing', token: 'wrong' }, { op: 'hostd-list' }, { op: 'say', token: 'right' })
    expect(replies.map(({ error, output }) => error?.code ?? output)).toEqual(['forbidden', 'forbidden', 'forbidden', '[hi]'])
  })
})

describe('whose socket it is', () => {
  test.each([
    ['a symbolic link', (path: string) => symlinkSync('/tmp/nothing-here', path), 'is a symbolic link'],
    ['a file', (path: string) => writeFileSync(path, 'mine'), 'exists and is not a socket'],
    ['a folder', (path: string) => mkdirSync(path), 'exists and is not a socket'],
  ])('%s at its path is refused and stays', async (_, make, says) => {
    using at = place()
    mkdirSync(join(at.socket, '..'))
    make(at.socket)
    const before = lstatSync(at.socket).ino
    const { code, stderr } = await at.nest.run(['hostd', '--socket', at.socket])
    expect({ code, says: stderr.includes(says), stderr }).toMatchObject({ code: 1, says: true })
    expect(lstatSync(at.socket).ino).toBe(before)
  })

  test('the socket of a program that listens is refused; what a killed hostd left is taken over', async () => {
    using at = place()
    mkdirSync(join(at.socket, '..'))
    const other = Bun.listen({ unix: at.socket, socket: { data: () => undefined } })
    expect((await at.nest.run(['hostd', '--socket', at.socket])).stderr).toContain('another program serves')
    other.stop(true)
    const first = await at.start()
    signal(first.pid, 'SIGKILL')
    await first.process.result
    expect(lstatSync(at.socket).isSocket()).toBe(true)
    expect(await (await at.start()).ask({ op: 'disk-usage' })).toMatchObject([{ ok: true }])
  })

  test('a second daemon on the path is refused, and the first goes on', async () => {
    using at = place()
    const first = await at.start()
    const { code, stderr } = await at.nest.run(['hostd', '--socket', at.socket])
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('another hostd serves') })
    expect(await first.ask({ op: 'disk-usage' })).toMatchObject([{ ok: true }])
  })

  test('a folder that others can write to, a link as its lock, and a path that is too long are refused', async () => {
    using at = place()
    const folder = join(at.socket, '..')
    mkdirSync(folder)
    symlinkSync('/tmp/elsewhere', `${at.socket}.lock`)
    expect((await at.nest.run(['hostd', '--socket', at.socket])).stderr).toContain('ELOOP')
    chmodSync(folder, 0o777)
    expect((await at.nest.run(['hostd', '--socket', at.socket])).stderr).toContain('can be written by others')
    expect((await at.nest.run(['hostd', '--socket', `/tmp/${'x'.repeat(120)}`])).stderr).toContain('at most 107 bytes')
  })
})

describe('how it ends', () => {
  test('SIGTERM kills what runs, leaves a receipt of it, removes the socket, and ends with 0', async () => {
    using at = place()
    const pidFile = join(at.folder, 'pid')
    const slow = at.script('slow', `#!/bin/sh\necho $$ > ${pidFile}\nexec sleep 100\n`)
    const hostd = await at.start('--catalogue', at.catalogue(operation('slow', { argv: [slow] })))
    const reply = hostd.ask({ op: 'slow' })
    await until(() => (statSync(pidFile, { throwIfNoEntry: false })?.size ?? 0) > 0)
    expect(await hostd.stop()).toBe(0)
    expect(await reply).toMatchObject([{ ok: false, exitCode: null, error: { code: 'stopped' } }])
    expect(runs(Number(readFileSync(pidFile, 'utf8')))).toBe(false)
    expect(lstatSync(at.socket, { throwIfNoEntry: false })).toBeUndefined()
    expect(await at.receipts()).toMatchObject([{ tool: 'hostd.slow', status: 'failed' }])
  })

  test('after kill -9 the next start ends what the first one started, and writes its receipt', async () => {
    using at = place()
    const pidFile = join(at.folder, 'pid')
    const slow = at.script('slow', `#!/bin/sh\nsetsid sleep 100 &\necho $! > ${pidFile}\nwait\n`)
    const catalogue = at.catalogue(operation('slow', { argv: [slow] }))
    const hostd = await at.start('--catalogue', catalogue)
    const reply = hostd.ask({ op: 'slow' }).catch(() => 'gone')
    await until(() => (statSync(pidFile, { throwIfNoEntry: false })?.size ?? 0) > 0)
    signal(hostd.pid, 'SIGKILL')
    expect(await reply).toBe('gone')
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(runs(pid)).toBe(true)
    const again = await at.start('--catalogue', catalogue)
    await until(() => !runs(pid))
    expect(await at.receipts()).toMatchObject([{ tool: 'hostd.slow', status: 'failed', error: expect.stringContaining('was killed') }])
    await again.stop()
    expect((await at.nest.run(['receipt', 'verify', '--deep'])).stdout).toContain('valid: 1 receipt')
  })
})

describe('a foreign client', () => {
  test.if(needs('python3'))('in python gets one reply a line, with its ids', async () => {
    using at = place()
    await at.start('--catalogue', at.catalogue(operation('say', { argv: [at.script('echo', echo), 'hi'] })))
    const replies = foreign(at.socket, ['{"id":"a","op":"say","params":{}}', '{"id":7,"op":"say"}', '', 'junk'])
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(replies).toHaveLength(3)
    expect(replies.find(({ id }) => id === 'a')).toMatchObject({ ok: true, output: '[hi]', exitCode: 0 })
    expect(replies.find(({ id }) => id === 7)).toMatchObject({ ok: true, output: '[hi]', exitCode: 0 })
    expect(replies.find(({ id }) => id === '')).toMatchObject({ ok: false, error: { code: 'bad_request' } })
  })

  test.if(needs('socat'))('in socat gets a reply in the documented order of keys', async () => {
    using at = place()
    await at.start('--catalogue', at.catalogue(operation('say', { argv: [at.script('echo', echo), 'hi'] })))
    const { stdout } = Bun.spawnSync(['socat', '-t5', '-', `UNIX-CONNECT:${at.socket}`], { stdin: Buffer.from('{"id":1,"op":"say"}\n') })
    expect(stdout.toString()).toMatch(/^\{"id":1,"ok":true,"output":"\[hi\]","exitCode":0,"receipt":"receipt-[0-9a-f]{8}-1"\}\n$/)
  })

  test('above the limit of connections is told so, and gets in again when one has closed', async () => {
    using at = place()
    await at.start('--catalogue', at.catalogue(`[server]\nconnections = 2\n${operation('say', { argv: [at.script('echo', echo), 'hi'] })}`))
    const dial = () => Bun.connect({ unix: at.socket, socket: { data: () => undefined } })
    const [one] = [await dial(), await dial()]
    const say = async () => JSON.parse((await exchange(at.socket, '{"op":"say"}'))[0] ?? '')
    expect(await say()).toMatchObject({ ok: false, error: { code: 'too_many' } })
    one.end()
    await until(async () => (await say()).output === '[hi]')
  })

  test('that sends a line without end is cut off with an answer, and others are served', async () => {
    using at = place()
    const hostd = await at.start()
    const [line = ''] = await exchange(at.socket, 'x'.repeat(100_000))
    expect(JSON.parse(line)).toMatchObject({ ok: false, error: { code: 'too_large' } })
    expect(await hostd.ask({ op: 'disk-usage' })).toMatchObject([{ ok: true }])
  })
})
