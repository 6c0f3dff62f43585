/** Tests the limits of time, output and number of hostd, its answers, and the reason that the client gives when there is none. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { callHostd, listOps } from '../../../src/control/hostd/client.ts'
import { echo, operation, place, runs } from './hostd-daemon.ts'

describe('limits', () => {
  test('a timeout kills the whole group, and what left the group', async () => {
    using at = place()
    const pids = join(at.folder, 'pids')
    // A length that nothing else on this machine has.
    const own = `100.0000${process.pid}`
    const slow = at.script(
      'slow',
      `#!/bin/sh\ntrap '' TERM\nsetsid sleep ${own} &\nsleep ${own} &\necho $$ > ${pids}\necho $! >> ${pids}\necho begun\nwait\nsleep ${own}\n`,
    )
    const hostd = await at.start('--catalogue', at.catalogue(operation('slow', { argv: [slow], more: 'timeout_s = 5' })))
    expect(await hostd.ask({ op: 'slow' })).toMatchObject([{ ok: false, output: 'begun\n', exitCode: null, error: { code: 'timeout' } }])
    const left = readFileSync(pids, 'utf8').trim().split('\n').map(Number).filter(runs)
    expect({ ours: Bun.spawnSync(['pgrep', '-f', `^sleep ${own}$`]).stdout.toString(), left }).toEqual({ ours: '', left: [] })
  })

  test('output is cut at its cap, at the end of a character, and the program goes on', async () => {
    using at = place()
    const flood = at.script('flood', `#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\nprintf done > ${at.folder}/done\n`)
    const wide = at.script('wide', '#!/bin/sh\nprintf "\u00e9\u00e9\u00e9"\n')
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(
        operation('flood', { argv: [flood], more: 'output_bytes = 1000' }) + operation('wide', { argv: [wide], more: 'output_bytes = 3' }),
      ),
    )
    const [first, second] = await hostd.ask({ op: 'flood' }, { op: 'wide' })
    expect(first).toMatchObject({ ok: true, exitCode: 0, truncated: true, output: 'x'.repeat(1_000) })
    expect(second).toMatchObject({ ok: true, truncated: true, output: '\u00e9' })
    expect(readFileSync(join(at.folder, 'done'), 'utf8')).toBe('done')
  })

  test('operations run at the same time, up to the limit; the others are told to try again', async () => {
    using at = place()
    // It ends when three of it have begun.
    const wait = at.script(
      'wait',
      `#!/bin/sh\ncd ${at.folder}\ntouch $$.begun\nuntil [ $(ls *.begun | wc -l) -ge 3 ]; do sleep 0.1; done\n`,
    )
    const hostd = await at.start('--catalogue', at.catalogue(`[server]\nconcurrent = 3\n${operation('wait', { argv: [wait] })}`))
    const replies = await hostd.ask(...Array.from({ length: 5 }, () => ({ op: 'wait' })))
    expect(replies.map(({ ok, error }) => (ok ? 'ok' : error?.code)).sort()).toEqual(['ok', 'ok', 'ok', 'too_many', 'too_many'])
    expect(await hostd.ask({ op: 'wait' })).toMatchObject([{ ok: true }])
  })

  test('requests above the rate are refused, and leave one receipt instead of many', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(`[server]\nper_minute = 3\n${operation('say', { argv: [at.script('echo', echo)] })}`),
    )
    const replies = await hostd.ask(...Array.from({ length: 10 }, () => ({ op: 'nothing' })))
    expect(replies.filter(({ error }) => error?.code === 'too_many')).toHaveLength(7)
    expect(await at.receipts()).toHaveLength(4)
  })

  test('the environment is made from nothing, and stdin is empty', async () => {
    using at = place()
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(operation('env', { argv: [at.script('env', '#!/bin/sh\ncat\nenv\n')], more: 'env = { OWN = "a b" }' })),
    )
    const [reply] = await hostd.ask({ op: 'env' })
    const names = reply?.output.split('\n').map((line) => line.split('=')[0])
    expect(names?.filter((name) => name !== '' && !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name ?? '')).sort()).toEqual([
      'BRAIDCLAW_HOSTD_CALL',
      'LANG',
      'OWN',
      'PATH',
      'TERM',
    ])
  })
})

describe('answers', () => {
  test('a failure has its exit code and what the program said; a listed exit code counts as done', async () => {
    using at = place()
    const fail = at.script('fail', '#!/bin/sh\necho out\necho wrong >&2\nexit 3\n')
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(operation('fail', { argv: [fail] }) + operation('status', { argv: [fail], more: 'done_codes = [3]' })),
    )
    const replies = await hostd.ask({ op: 'fail' }, { op: 'status' })
    expect(replies).toMatchObject([
      { ok: false, output: 'out\nwrong\n', exitCode: 3, error: { code: 'failed', message: '"fail" ended with exit code 3' } },
      { ok: true, output: 'out\nwrong\n', exitCode: 3 },
    ])
  })

  test('what a program says to stdout and to stderr is in the order in which it said it', async () => {
    using at = place()
    const turns = at.script('turns', '#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do echo $n; echo -$n >&2; done\n')
    const hostd = await at.start('--catalogue', at.catalogue(operation('turns', { argv: [turns] })))
    const replies = await hostd.ask(...Array.from({ length: 4 }, () => ({ op: 'turns' })))
    const said = Array.from({ length: 9 }, (_, n) => `${n + 1}\n-${n + 1}\n`).join('')
    expect(replies.map(({ output }) => output)).toEqual(replies.map(() => said))
  })

  test('what is not available here is listed with the reason, and a call of it says so', async () => {
    using at = place()
    const open = at.script('open', echo)
    chmodSync(open, 0o777)
    const folder = join(at.folder, 'shared')
    mkdirSync(folder)
    symlinkSync('/bin/true', join(folder, 'link'))
    chmodSync(folder, 0o777)
    const text = [
      operation('bsd', { argv: ['/bin/true'] }).replace('linux', 'freebsd'),
      operation('gone', { argv: ['/no/such/program'] }),
      operation('open', { argv: [open] }),
      operation('moved', { argv: [join(folder, 'link')] }),
    ]
    const hostd = await at.start('--catalogue', at.catalogue(text.join('')))
    const listed = await listOps(at.socket)
    const reasons = [
      'it is for freebsd; this is linux',
      'the program "/no/such/program" does not exist',
      `"${open}" can be written by others`,
      `"${folder}" can be written by others`,
    ]
    expect(listed.ok && listed.operations.map(({ available, unavailable }) => ({ available, unavailable }))).toEqual(
      reasons.map((unavailable) => ({ available: false, unavailable: expect.stringContaining(unavailable) })),
    )
    const replies = await hostd.ask({ op: 'bsd' }, { op: 'gone' }, { op: 'open' }, { op: 'moved' })
    expect(replies.map(({ error }) => error)).toEqual(
      reasons.map((message) => ({ code: 'unavailable', message: expect.stringContaining(message) })),
    )
  })

  test('the operations of the seed run by stand-ins with the seed’s shape of answer', async () => {
    using at = place()
    const bastille = at.script('bastille', '#!/bin/sh\n[ "$1" = list ] && printf "JID  IP Address      Hostname  Path"\n')
    await at.start('--catalogue', at.catalogue(operation('bastille-list', { argv: [bastille, 'list'] })))
    const { ok, output, exitCode } = await callHostd(at.socket, { op: 'bastille-list', params: {} })
    expect(JSON.stringify({ ok, output, exitCode })).toBe('{"ok":true,"output":"JID  IP Address      Hostname  Path","exitCode":0}')
  })
})

describe('the client', () => {
  test('says why there is no answer: no socket, a link, a socket of another user, a program that hangs or closes', async () => {
    using at = place()
    mkdirSync(join(at.socket, '..'))
    const message = async (socket: string) => (await callHostd(socket, { op: 'x' }, 300)).error?.message
    expect(await message(at.socket)).toContain(`the socket "${at.socket}" does not exist`)
    const server = Bun.listen({ unix: at.socket, socket: { data: (to, bytes) => void (bytes.includes('close') && to.end()) } })
    expect(await message(at.socket)).toContain('did not answer within 300 ms')
    expect((await callHostd(at.socket, { op: 'close' }, 30_000)).error?.message).toContain('closed the connection')
    symlinkSync(at.socket, join(at.folder, 'link'))
    expect(await message(join(at.folder, 'link'))).toContain('is not a socket')
    if (process.getuid?.() === 0) {
      Bun.spawnSync(['chown', '65534', at.socket])
      expect(await message(at.socket)).toContain('belongs to user 65534')
    }
    server.stop(true)
  })
})
