/** Secrets planted wherever a session meets them, then a search of every file and every stream that it left behind. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { offline } from '../../src/sandbox/filesystem/command-filesystem.ts'
import { cacheEnvironment } from '../../src/sandbox/filesystem/command-home.ts'
import { minimumConfig, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { environment, planted, secrets } from '../support/planted.ts'
import { answer, call, openSession, type Session, steps } from '../support/secret-session.ts'
import { filesBelow, findBelow, findIn, spellings } from '../support/secrets.ts'
import { isDeep, repetitions } from '../support/tier.ts'

const state: { session?: Session } = {}

function session(): Session {
  if (!state.session) throw new Error('no session yet')
  return state.session
}

beforeAll(() => {
  state.session = openSession()
})
afterAll(() => state.session?.[Symbol.dispose]())

test('the search itself finds a secret in every spelling', () => {
  for (const { value } of secrets) {
    for (const [, text] of spellings(value)) expect(findIn('here', `before ${text} after`, secrets)).not.toEqual([])
    for (const before of ['', 'x', 'xy']) {
      const text = Buffer.from(`${before}${value} after`).toString('base64')
      expect(findIn('here', text, secrets)).not.toEqual([])
    }
  }
  for (const [path, text] of Object.entries(planted)) expect(findIn(path, text, secrets)).not.toEqual([])
})

describe('a session', () => {
  for (const [name, step] of Object.entries(steps)) test(name, () => step(session()))
})

test('the session was a broad one', async () => {
  const export_ = session().streams.findLast(({ what }) => what.startsWith('stdout of memory export'))?.text ?? ''
  expect(export_.split('\n').length).toBeGreaterThan(repetitions({ fast: 40, deep: 120 }))
  expect(export_).toContain('[redacted:OPENAI_API_KEY]')
  expect(export_).toContain('[redacted:OTHER_PASS]')
  expect(export_).toContain('[redacted:GITHUB_TOKEN]')
  for (const tool of ['file_read', 'search', 'shell', 'http', 'file_write', 'file_edit', 'memory_search'])
    expect(export_).toContain(`"name":"${tool}"`)
  expect((await session().run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

test('no stream holds a secret', () => {
  expect(session().streams.flatMap(({ what, text }) => findIn(what, text, secrets))).toEqual([])
})

test('no file of the home or the workspace holds a secret, but those that were planted', () => {
  expect(findBelow(session().at.home, secrets, Object.keys(planted))).toEqual([])
})

test('the model is never sent a secret, except as the key it is given', () => {
  const asked = session().asked
  expect(asked.length).toBeGreaterThan(repetitions({ fast: 5, deep: 10 }))
  expect(asked.flatMap((body, index) => findIn(`request ${index}`, body, secrets))).toEqual([])
})

test('the receipt key is in its own file alone', () => {
  const value = readFileSync(join(session().at.home, '.braidclaw/receipt.key'), 'utf8').trim()
  const key = [
    { name: 'the receipt key', value },
    { name: 'the receipt key, in bytes', value: Buffer.from(value, 'hex').toString('latin1') },
  ]
  expect(findBelow(session().at.home, key, ['.braidclaw/receipt.key'])).toEqual([])
  expect(session().streams.flatMap(({ what, text }) => findIn(what, text, key))).toEqual([])
})

describe('children', () => {
  test.if(needs('bwrap'))('a command gets an environment made from nothing', async () => {
    const { stdout } = await session().turn(
      'go',
      [call('shell', { command: 'env' }), { text: '{{last_tool_result}}' }],
      ['--autonomy', 'full'],
    )
    const names = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('=')[0] ?? '')
    const git = ['GIT_TERMINAL_PROMPT', 'GIT_CONFIG_PARAMETERS', 'GIT_OPTIONAL_LOCKS', 'GIT_DISCOVERY_ACROSS_FILESYSTEM', 'TAR_OPTIONS']
    const caches = Object.keys({ ...cacheEnvironment, ...offline })
    const known = [...caches, 'PATH', 'HOME', 'LANG', 'TERM', 'NO_COLOR', 'PAGER', ...git, 'TZ', 'PWD', 'SHLVL', '_', 'TMPDIR']
    expect(names).toContain('PATH')
    expect(names.filter((name) => !known.includes(name))).toEqual([])
  })

  test.if(needs('bwrap'))('a running command has no secret in /proc/PID/environ, nor in its arguments', async () => {
    const fixture = session().at.fixture([call('shell', { command: 'sleep 9.75' }), answer])
    const running = session().at.start(['agent', '-m', 'go', '--approve-all-medium'], {
      env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture },
    })
    const children = await until(() => processesWith('9.75', running.pid))
    const seen = children.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`]).map((path) => readFileSync(path))
    process.kill(running.pid, 'SIGINT')
    await running.result
    expect(seen.length).toBeGreaterThan(1)
    expect(seen.flatMap((bytes) => findIn('/proc', bytes, secrets))).toEqual([])
  })
})

describe('permissions', () => {
  test('whatever the umask, what we keep is for its owner alone', async () => {
    using at = nest()
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('time', {}), { text: 'late' }]) }
    await at.run(['init'], { through })
    await at.run(['agent', '-m', 'go'], { through, env })
    await at.run(['trust'], { through })
    await at.run(['estop'], { through })
    const root = join(at.home, '.braidclaw')
    expect(readdirSync(root).sort()).toEqual(
      expect.arrayContaining(['ESTOP', 'config.toml', 'memory.sqlite', 'receipt.key', 'receipts.head', 'tool_receipts.log']),
    )
    // The folder `run` is closed to others; the copies of /etc in it are for commands, and have the modes of /etc.
    const kept = (path: string) => !path.startsWith('run/')
    const modes = ['.', ...readdirSync(root, { recursive: true, encoding: 'utf8' })]
      .filter(kept)
      .map((path) => [path, lstatSync(join(root, path)).mode & 0o077])
    expect(modes.filter(([, others]) => others !== 0)).toEqual([])
    const files = filesBelow(root).filter(kept)
    expect(files.map((path) => lstatSync(join(root, path)).mode & 0o777)).toEqual(files.map(() => 0o600))
  })

  test('without init too, and in a home that is made on the way', async () => {
    using at = nest()
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    await at.run(['agent', '-m', 'What time is it?'], { through, env: { BRAIDCLAW_HOME: join(at.dir, 'deep/home') } })
    const root = join(at.dir, 'deep/home')
    expect(existsSync(join(root, 'receipt.key'))).toBe(true)
    expect(['.', ...readdirSync(root)].filter((path) => (lstatSync(join(root, path)).mode & 0o077) !== 0)).toEqual([])
  })

  test.each(isDeep ? ['644', '640', '604', '660'] : ['640', '604'])(
    'a receipt key of mode %s is refused, by turns and by verify',
    async (mode) => {
      using at = nest()
      at.config(minimumConfig)
      const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('time', {}), { text: 'late' }]) }
      expect((await at.run(['agent', '-m', 'go'], { env })).code).toBe(0)
      const key = join(at.home, '.braidclaw/receipt.key')
      chmodSync(key, Number.parseInt(mode, 8))
      for (const args of [
        ['agent', '-m', 'go'],
        ['receipt', 'verify'],
        ['receipt', 'anchor'],
      ]) {
        const { code, stdout, stderr } = await at.run(args, { env })
        expect({ args, code }).toEqual({ args, code: 9 })
        expect(stdout + stderr).toContain(`run: chmod 600 "${key}"`)
      }
      chmodSync(key, 0o600)
      expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    },
  )
})

/** Children, and theirs, whose command line has this word. */
function processesWith(word: string, not: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== not && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes(word) && read(`/proc/${pid}/environ`).includes(session().at.workspace))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

async function until<T>(look: () => T[]): Promise<T[]> {
  for (;;) {
    const found = look()
    if (found.length > 0) return found
    await Bun.sleep(10)
  }
}
