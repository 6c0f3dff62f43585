/** hostd under hostile input and on a machine that fails: it answers every line once, stays up, and runs nothing that it cannot record. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { given, needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { ask, echo, exchange, operation, place, signal } from './hostd-daemon.ts'

const say = (script: string) =>
  operation('say', { argv: [script, '{x}'], more: `params.x = { type = "text", pattern = '^.*$', most = 50 }` })

describe('hostile lines', () => {
  test('each get exactly one reply, whatever they are, and run nothing that the catalogue does not say', async () => {
    using at = place()
    await at.start('--catalogue', at.catalogue(`[server]\nper_minute = 100000\nconcurrent = 64\n${say(at.script('echo', echo))}`))
    const value = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.constant(null),
      fc.constant('say'),
      fc.constant({ x: 'a' }),
      fc.array(fc.string(), { maxLength: 2 }),
      fc.double(),
      fc.object({ maxDepth: 2, maxKeys: 3 }),
    )
    const request = fc.dictionary(
      fc.constantFrom('id', 'op', 'params', 'token', 'approval', 'caller', '__proto__', 'constructor', 'x'),
      value,
      { maxKeys: 5 },
    )
    const line = fc.oneof(
      request.map((each) => JSON.stringify(each)),
      fc.string({ maxLength: 40 }).map((text) => text.replaceAll('\n', ' ')),
      fc.constantFrom(
        '{',
        '[]',
        'null',
        '"say"',
        '{"op":"say","params":{"x":"ok"}}',
        '{"op":"say","op":"sh"}',
        '\ufeff{}',
        '{"id":1e999,"op":"say"}',
      ),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 12 }), async (lines) => {
        const asked = lines.filter((each) => each.trim() !== '')
        const replies = (await exchange(at.socket, lines.join('\n'))).map((each) => JSON.parse(each))
        expect(replies).toHaveLength(asked.length)
        for (const { ok, output } of replies) if (ok) expect(output).toMatch(/^\[/)
      }),
      { numRuns: 30 },
    )
    expect((await at.nest.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  test('that are bytes and no text are answered', async () => {
    using at = place()
    await at.start('--catalogue', at.catalogue(say(at.script('echo', echo))))
    const replies = await exchange(at.socket, '\u0000\u0001\ud800{"op":"say"}')
    expect(replies.map((each) => JSON.parse(each).error.code)).toEqual(['bad_request'])
  })

  test('that are nested without end are answered, and the next ones too', async () => {
    using at = place()
    const hostd = await at.start('--catalogue', at.catalogue(say(at.script('echo', echo))))
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const)
      for (const depth of [600, 5_000, 9_000]) {
        const [line = ''] = await exchange(at.socket, `{"op":"say","params":{"x":${open.repeat(depth)}1${close.repeat(depth)}}}`)
        expect(JSON.parse(line)).toMatchObject({ ok: false, exitCode: null })
      }
    expect(await hostd.ask({ op: 'say', params: { x: 'a' } })).toMatchObject([{ output: '[a]' }])
  })
})

describe('clients that misbehave', () => {
  test('one that leaves does not end its operation, which gets its receipt', async () => {
    using at = place()
    const slow = at.script('slow', `#!/bin/sh\ntouch ${at.folder}/begun\nsleep 0.4\ntouch ${at.folder}/done\n`)
    await at.start('--catalogue', at.catalogue(operation('slow', { argv: [slow] })))
    const client = await Bun.connect({ unix: at.socket, socket: { data: () => undefined } })
    client.write('{"op":"slow"}\n')
    await until(() => isThere(at.folder, 'begun'))
    client.terminate()
    await until(() => isThere(at.folder, 'done'))
    await until(() => readdirSync(join(at.nest.home, '.braidclaw/hostd/running')).length === 0)
    expect(await at.receipts()).toMatchObject([{ tool: 'hostd.slow', status: 'allowed' }])
  })

  test.if(needs('python3'))('one that never reads its replies holds up nobody', async () => {
    using at = place()
    const big = at.script('big', '#!/bin/sh\nhead -c 1000000 /dev/zero | tr "\\0" x\n')
    const hostd = await at.start(
      '--catalogue',
      at.catalogue(
        `[server]\nconcurrent = 16\n${operation('big', { argv: [big], more: 'output_bytes = 1048576' })}${say(at.script('echo', echo))}`,
      ),
    )
    const deaf = Bun.spawn([
      'python3',
      '-c',
      `import socket,time\ns=socket.socket(socket.AF_UNIX)\ns.connect(${JSON.stringify(at.socket)})\ns.sendall(b'{"op":"big"}\\n'*4)\ntime.sleep(20)`,
    ])
    await Bun.sleep(300)
    for (let round = 0; round < 3; round += 1) expect(await hostd.ask({ op: 'say', params: { x: 'a' } })).toMatchObject([{ output: '[a]' }])
    deaf.kill()
  })
})

describe('kill -9 at any moment', () => {
  test('leaves no operation without a receipt, and a record that verifies', async () => {
    using at = place()
    const ran = join(at.folder, 'ran')
    const script = at.script('note', `#!/bin/sh\necho "$BRAIDCLAW_HOSTD_CALL" >> ${ran}\nsleep 0.0$1\n`)
    const more = 'params.x = { type = "int", min = 0, max = 9 }'
    const catalogue = at.catalogue(`[server]\nconcurrent = 16\n${operation('note', { argv: [script, '{x}'], more })}`)
    for (let life = 0; life < 4; life += 1) {
      const hostd = await at.start('--catalogue', catalogue)
      const calls = Promise.all(
        [0, 3, 6, 9].map(async (x) => {
          for (let round = 0; round < 20; round += 1) await hostd.ask({ op: 'note', params: { x } }).catch(() => undefined)
        }),
      )
      await until(() => linesOf(ran) >= life * 5 + 1)
      signal(hostd.pid, 'SIGKILL')
      await calls
    }
    await (await at.start('--catalogue', catalogue)).stop()
    using database = new Database(join(at.nest.home, '.braidclaw/memory.sqlite'), { readonly: true })
    const recorded = database
      .query<{ input: string }, []>('SELECT input FROM operator_actions')
      .all()
      .map(({ input }) => JSON.parse(input).call)
    const started = readFileSync(ran, 'utf8').trim().split('\n')
    expect(started.length).toBeGreaterThan(15)
    expect(started.filter((call) => !recorded.includes(call))).toEqual([])
    expect((await at.nest.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })
})

describe('a machine that fails', () => {
  test('receipts that were altered while it runs: the operation does not run, and the next start refuses with 9', async () => {
    using at = place()
    const catalogue = at.catalogue(say(at.script('echo', echo)))
    const hostd = await at.start('--catalogue', catalogue)
    await hostd.ask({ op: 'say', params: { x: 'a' } })
    const log = join(at.nest.home, '.braidclaw/tool_receipts.log')
    writeFileSync(log, readFileSync(log, 'utf8').replace('"status":"allowed"', '"status":"denied"'))
    expect(await hostd.ask({ op: 'say', params: { x: 'b' } })).toMatchObject([{ ok: false, exitCode: null, error: { code: 'no_receipt' } }])
    expect(readdirSync(join(at.nest.home, '.braidclaw/hostd/running'))).toEqual([])
    await hostd.stop()
    expect((await at.nest.run(['hostd', '--socket', at.socket, '--catalogue', catalogue])).code).toBe(9)
  })

  const mounts = given(process.getuid?.() === 0, 'root') && needs('unshare', 'mount')
  test.if(mounts)('a full disk: nothing runs until there is space again', async () => {
    using at = place()
    const home = join(at.folder, 'home')
    Bun.spawnSync(['mkdir', home])
    const script = at.script('echo', `#!/bin/sh\necho ran >> ${at.folder}/ran\n`)
    const catalogue = at.catalogue(operation('say', { argv: [script] }))
    const through = ['unshare', '--mount', 'sh', '-c', `mount -t tmpfs -o size=3m none ${home} && exec "$@"`, 'sh']
    const process = at.nest.start(['hostd', '--socket', at.socket, '--catalogue', catalogue], {
      env: { BRAIDCLAW_HOME: home },
      through,
      timeoutMs: 90_000,
    })
    await process.says('ready: ')
    expect(await ask(at.socket, [{ op: 'say' }])).toMatchObject([{ ok: true }])
    const filler = `/proc/${process.pid}/root${home}/filler`
    Bun.spawnSync(['dd', 'if=/dev/zero', `of=${filler}`, 'bs=1k', 'count=4000'])
    expect(await ask(at.socket, [{ op: 'say' }])).toMatchObject([{ ok: false, exitCode: null, error: { code: 'no_receipt' } }])
    expect(readFileSync(join(at.folder, 'ran'), 'utf8')).toBe('ran\n')
    expect(readdirSync(`/proc/${process.pid}/root${home}/hostd/running`)).toEqual([])
    rmSync(filler)
    expect(await ask(at.socket, [{ op: 'say' }])).toMatchObject([{ ok: true }])
    signal(process.pid, 'SIGTERM')
    expect((await process.result).code).toBe(0)
  })
})

function linesOf(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0
}

function isThere(folder: string, name: string): boolean {
  return statSync(join(folder, name), { throwIfNoEntry: false }) !== undefined
}
