/** Whatever a control plane answers, or something else in its place: the commands say what it was and what to do, and end with the right code. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest, nest } from '../../support/cli.ts'

const evil = '\u001b[2J\u202e'
const token = 'cpo_0123456789012345678901234567890123456789012'

type Answer = (request: Request, url: URL) => Response | Promise<Response>

let at: Nest
beforeEach(() => {
  at = nest()
})
afterEach(() => at[Symbol.dispose]())

function answering(answer: Answer, hostname = '127.0.0.1') {
  const server = Bun.serve({ port: 0, hostname, idleTimeout: 0, fetch: (request) => answer(request, new URL(request.url)) })
  return { url: `http://${hostname}:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

const refusing = (status: number, code: string, message: string) => answering(() => Response.json({ error: { code, message } }, { status }))
const control = (url: string, words: readonly string[], env = {}) =>
  at.run(['control', ...words, '--url', url], { env: { CONTROLPLANE_OPERATOR_TOKEN: token, ...env } })

describe('refusals', () => {
  test.each([
    [401, 'unauthorized', 3],
    [403, 'forbidden', 3],
    [400, 'bad_request', 2],
    [402, 'budget_exceeded', 6],
    [404, 'not_found', 1],
    [409, 'already_decided', 1],
    [503, 'unavailable', 1],
  ])('%i %s ends with exit code %i', async (status, code, exit) => {
    await using server = refusing(status, code, `no such ${evil}task`)
    const result = await control(server.url, ['task', 'show', 'TASK-001'])
    expect([result.code, result.stdout]).toEqual([exit, ''])
    expect(result.stderr).toStartWith('error: ')
    expect(result.stderr).not.toContain('\u001b')
    expect(result.stderr).not.toContain(token)
  })

  test('a wrong token is named by the place it came from', async () => {
    await using server = refusing(401, 'unauthorized', 'no')
    expect((await control(server.url, ['status'])).stderr).toContain('does not accept the operator token from CONTROLPLANE_OPERATOR_TOKEN')
    const file = join(at.home, '.braidclaw/control/operator.token')
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, `${token}\n`, { mode: 0o600 })
    const { code, stderr } = await control(server.url, ['status'], { CONTROLPLANE_OPERATOR_TOKEN: '' })
    expect([code, stderr.includes(`from ${file}:`), stderr.includes(token)]).toEqual([3, true, false])
  })
})

describe('something else at the address', () => {
  test('nobody: how to start one', async () => {
    const { code, stdout, stderr } = await control('http://127.0.0.1:1', ['status'])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(
      'error: no control plane answers at http://127.0.0.1:1 (--url): nothing listens there (connection refused). To start one',
    )
    expect(stderr).toContain('braidclaw control init, then braidclaw control')
  })

  test.each([
    ['a page', 'no control plane answers at', () => new Response('<html>hello</html>')],
    ['other JSON', 'the server at', () => Response.json({ hello: 'world' })],
    ['null', 'no control plane answers at', () => Response.json(null)],
  ] as const)('%s: said, and it is not called a bug', async (_name, begin, answer) => {
    await using server = answering(answer)
    for (const words of [['task', 'list'], ['status'], ['agent'], ['budget'], ['run']] as const) {
      const { code, stderr } = await control(server.url, words)
      expect({ words, code, stderr }).toEqual({ words, code: 1, stderr: expect.stringContaining(`error: ${begin} ${server.url} `) })
      expect(stderr).not.toContain('bug')
    }
  })

  test('a redirect to another place does not take the token there', async () => {
    const seen: (string | null)[] = []
    await using thief = answering((request) => {
      seen.push(request.headers.get('authorization'))
      return Response.json({ agents: [] })
    })
    await using server = answering((_, url) => Response.redirect(`${thief.url}${url.pathname}`, 307))
    expect((await control(server.url, ['agent'])).code).toBe(1)
    expect(seen).toEqual([])
  })

  test('one that never answers is left at once by Ctrl-C, with 130', async () => {
    let asked = () => {}
    const arrived = new Promise<void>((resolve) => {
      asked = resolve
    })
    await using server = answering(() => {
      asked()
      return new Promise<Response>(() => {})
    })
    const started = at.start(['control', 'task', 'list', '--url', server.url], { env: { CONTROLPLANE_OPERATOR_TOKEN: token } })
    await arrived
    process.kill(started.pid, 'SIGINT')
    expect(await started.result).toEqual({ code: 130, stdout: '', stderr: '' })
  })

  test('without TLS to another machine there is a warning', async () => {
    await using server = answering(() => Response.json({ agents: [] }), '0.0.0.0')
    const { code, stderr } = await control(server.url, ['agent'])
    expect([code, stderr.split('\n')[0]]).toEqual([
      0,
      `warning: the operator token travels unencrypted to ${server.url}; use https or an ssh tunnel`,
    ])
  })
})

describe('artifacts', () => {
  const run = (name: string, digest: string) => ({ run_id: 'RUN-001', artifacts: [{ name, digest, bytes: 4 }] })
  const serving = (name: string, digest: string) =>
    answering((_, { pathname }) => (pathname.includes('/artifacts/') ? new Response('evil') : Response.json(run(name, digest))))

  test.each([
    ['out.txt', 'a'.repeat(64), 9],
    ['../out.txt', new Bun.CryptoHasher('sha256').update('evil').digest('hex'), 1],
    ['..', 'a'.repeat(64), 1],
  ])('%s with the digest %s is not saved, and the command ends with %i', async (name, digest, code) => {
    await using server = serving(name, digest)
    const folder = join(at.dir, 'to', 'here')
    const result = await control(server.url, ['run', 'artifacts', '1', '--to', folder])
    expect([result.code, result.stdout, existsSync(join(folder, name)) && name !== '..']).toEqual([code, '', false])
  })
})

describe('completion', () => {
  const complete = (url: string, words: readonly string[]) =>
    at.run(['__complete', 'bash', 'control', ...words], { env: { CONTROLPLANE_API_URL: url, CONTROLPLANE_OPERATOR_TOKEN: token } })

  test('proposes the ids and names that the control plane knows', async () => {
    await using server = answering((_, { pathname }) =>
      pathname.endsWith('/agents')
        ? Response.json({
            agents: [
              { id: 'sysadmin', role: 'root' },
              { id: 'db-admin', role: 'db' },
            ],
          })
        : Response.json({ tasks: [{ task_id: 'TASK-001' }, { task_id: 'TASK-002' }], next: null, counts: {} }),
    )
    expect(await complete(server.url, ['task', 'cancel', 'TASK-001', 'TASK-'])).toMatchObject({
      code: 0,
      stdout: 'TASK-001\nTASK-002\n',
      stderr: '',
    })
    expect((await complete(server.url, ['agent', 'pause', 's'])).stdout).toBe('sysadmin\n')
    expect((await complete(server.url, ['task', 'add', '--role', ''])).stdout).toBe('root\ndb\n')
    expect((await complete(server.url, ['task', 'list', '--status', 'd'])).stdout).toBe('dead\n')
  })

  test('is silent when nobody answers, and does not wait for one that is slow', async () => {
    expect(await complete('http://127.0.0.1:1', ['agent', 'pause', ''])).toMatchObject({ code: 0, stderr: '' })
    await using server = answering(() => new Promise<Response>(() => {}))
    expect(await complete(server.url, ['agent', 'pause', 's'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

describe('into a pipe', () => {
  const event = (id: number) => ({
    id,
    at: '2026-11-23T18:00:00.000Z',
    type: 'task.created',
    actor: 'x',
    task_id: null,
    run_id: null,
    agent_id: null,
    role: null,
    data: {},
  })
  const endless: Answer = (_, url) => {
    const after = Number(url.searchParams.get('after') ?? 0)
    return Response.json({ events: Array.from({ length: 200 }, (_, at) => event(after + at + 1)), next: after + 200 })
  }

  test.each([['export --only events'], ['events --after 0 --json']])('%s | head -2 ends quietly', async (words) => {
    await using server = answering(endless)
    const script = `"$0" control ${words} --url "$1" | head -2; echo "\${PIPESTATUS[0]}"`
    const child = Bun.spawn(['bash', '-c', script, executable, server.url], {
      env: { ...at.env, CONTROLPLANE_OPERATOR_TOKEN: token },
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: 60_000,
    })
    const lines = (await child.stdout.text()).trimEnd().split('\n')
    expect([lines.length, lines.at(-1), await child.stderr.text()]).toEqual([3, '0', ''])
    expect(lines.slice(0, 2).map((line) => JSON.parse(line).id)).toEqual([1, 2])
  })
})
