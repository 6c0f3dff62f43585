/** The glass pane with a real tmux on a socket of its own. */

import { describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { runs } from '../hostd/hostd-daemon.ts'
import { controlServer } from '../support/control-server.ts'

const hasTmux = needs('tmux')
const real = test.if(hasTmux)

type Stage = AsyncDisposable & {
  readonly nest: Nest
  readonly logs: string
  tmux(...words: readonly string[]): string
  /** A variable of the environment is given as an object. */
  pane(...words: readonly (string | Readonly<Record<string, string>>)[]): ReturnType<Nest['run']>
  windows(): readonly string[]
  /** Waits until the window of an agent shows this text; returns what it shows. */
  shows(agent: string, text: string): Promise<string>
}

function stage(session = 'fleet'): Stage {
  const own = nest()
  const logs = join(own.dir, 'logs $(x) ;')
  mkdirSync(logs)
  const env = {
    ...own.env,
    TMUX_TMPDIR: own.dir,
    CONTROLPLANE_AIDER_TMUX_SESSION: session,
    CONTROLPLANE_AIDER_LOG_DIR: logs,
    CONTROLPLANE_SHARED_SECRET: 'very-secret-word',
  }
  const tmux = (...words: readonly string[]) => {
    const { stdout, stderr } = Bun.spawnSync(['tmux', '-L', 'test', '-f', '/dev/null', ...words], { env })
    return `${stdout}${stderr}`.trim()
  }
  const windows = () => tmux('list-windows', '-t', `=${session}:`, '-F', '#{window_index} #{window_name}').split('\n').filter(Boolean)
  return {
    nest: own,
    logs,
    tmux,
    windows,
    pane: (...words) =>
      own.run(['control', 'pane', '--tmux-server', 'test', ...words.filter((word) => typeof word === 'string')], {
        env: Object.assign({}, env, ...words.filter((word) => typeof word === 'object')),
        timeoutMs: 60_000,
      }),
    shows: (agent, text) =>
      until(() => {
        const seen = tmux('capture-pane', '-p', '-e', '-t', `=${session}:${agent}`)
        return seen.includes(text) && seen
      }),
    async [Symbol.asyncDispose]() {
      if (hasTmux) tmux('kill-server')
      await Bun.sleep(50)
      own[Symbol.dispose]()
    },
  }
}

describe('the windows', () => {
  real('follow the log of each agent, also what is appended, truncated and replaced later', async () => {
    await using at = stage()
    const log = join(at.logs, 'sysadmin.log')
    writeFileSync(log, 'first line\n')
    expect(await at.pane('--agent', 'sysadmin', '--agent', 'db-admin')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('2 windows: 2 new'),
    })
    expect(at.windows()).toEqual(['0 sysadmin', '1 db-admin'])
    await at.shows('sysadmin', 'first line')
    appendFileSync(log, 'second line\n')
    await at.shows('sysadmin', 'second line')
    writeFileSync(log, 'cut\n')
    await at.shows('sysadmin', 'cut')
    renameSync(log, `${log}.1`)
    writeFileSync(log, 'the next file\n')
    await at.shows('sysadmin', 'the next file')
    await at.shows('db-admin', 'waiting for')
    writeFileSync(join(at.logs, 'db-admin.log'), 'it came\n')
    await at.shows('db-admin', 'it came')
  })

  real('are those of the agents of the control plane when nothing else is said', async () => {
    await using at = stage()
    await using control = await controlServer()
    await control.addAgent('sysadmin')
    await control.addAgent('db-admin')
    const env = { CONTROLPLANE_API_URL: control.url, CONTROLPLANE_OPERATOR_TOKEN: control.operator }
    expect(await at.pane(env)).toMatchObject({ code: 0, stdout: expect.stringContaining('2 windows: 2 new') })
    expect(
      at
        .windows()
        .map((line) => line.split(' ')[1])
        .sort(),
    ).toEqual(['db-admin', 'sysadmin'])
    await control.client().fleet.remove('sysadmin')
    expect((await at.pane(env)).stdout).toContain('1 window: 0 new, 0 restarted, 1 closed')
  })

  real('come and go with the log files, and nothing happens when nothing changed', async () => {
    await using at = stage()
    for (const agent of ['a', 'b']) writeFileSync(join(at.logs, `${agent}.log`), '')
    writeFileSync(join(at.logs, 'x; touch owned.log'), '')
    expect((await at.pane('--logs')).stdout).toContain('2 windows: 2 new, 0 restarted, 0 closed')
    expect((await at.pane('--logs')).stdout).toContain('2 windows: 0 new, 0 restarted, 0 closed')
    renameSync(join(at.logs, 'a.log'), join(at.logs, 'c.log'))
    expect((await at.pane('--logs')).stdout).toContain('2 windows: 1 new, 0 restarted, 1 closed')
    expect(
      at
        .windows()
        .map((line) => line.split(' ')[1])
        .sort(),
    ).toEqual(['b', 'c'])
  })

  real('are put into a session that is there, without touching its own windows, whatever its numbers are', async () => {
    await using at = stage()
    at.tmux(
      'start-server',
      ';',
      'set-option',
      '-g',
      'base-index',
      '5',
      ';',
      'new-session',
      '-d',
      '-s',
      'fleet',
      '-n',
      'fleet',
      'sleep',
      '100',
    )
    at.tmux('set-option', '-g', 'renumber-windows', 'on')
    at.tmux('new-window', '-d', '-t', 'fleet:7', '-n', 'a', 'sleep', '100')
    expect(await at.pane('--agent', 'a', '--agent', 'b')).toMatchObject({ code: 0, stdout: expect.stringContaining('2 new') })
    expect(at.windows()).toEqual(['5 fleet', '6 a', '7 a', '8 b'])
    expect((await at.pane('--agent', 'b')).stdout).toContain('1 closed')
    expect(at.windows().map((line) => line.split(' ')[1])).toEqual(['fleet', 'a', 'b'])
  })

  real('with a name that begins another session’s name are put into their own', async () => {
    await using at = stage()
    at.tmux('new-session', '-d', '-s', 'fleet-of-others', 'sleep', '100')
    expect((await at.pane('--agent', 'a')).code).toBe(0)
    expect(at.tmux('list-windows', '-t', '=fleet-of-others:').split('\n')).toHaveLength(1)
    expect(at.windows()).toEqual(['0 a'])
  })

  real('whose follower was killed, or follows another folder, are used again', async () => {
    await using at = stage()
    writeFileSync(join(at.logs, 'a.log'), 'before\n')
    await at.pane('--agent', 'a')
    await at.shows('a', 'before')
    const id = at.tmux('display-message', '-p', '-t', '=fleet:a', '#{window_id}')
    process.kill(Number(at.tmux('display-message', '-p', '-t', '=fleet:a', '#{pane_pid}')), 'SIGKILL')
    await until(() => at.tmux('display-message', '-p', '-t', '=fleet:a', '#{pane_dead}') === '1')
    expect((await at.pane('--agent', 'a')).stdout).toContain('0 new, 1 restarted')
    await at.shows('a', 'before')
    const other = join(at.nest.dir, 'other')
    mkdirSync(other)
    writeFileSync(join(other, 'a.log'), 'elsewhere\n')
    expect((await at.pane('--agent', 'a', '--log-dir', other)).stdout).toContain('1 restarted')
    await at.shows('a', 'elsewhere')
    expect(at.tmux('display-message', '-p', '-t', '=fleet:a', '#{window_id}')).toBe(id)
  })

  real('are watched until a signal, and stay after it', async () => {
    await using at = stage()
    writeFileSync(join(at.logs, 'a.log'), '')
    const env = { TMUX_TMPDIR: at.nest.dir, CONTROLPLANE_AIDER_TMUX_SESSION: 'fleet', CONTROLPLANE_AIDER_LOG_DIR: at.logs }
    const watching = at.nest.start(['control', 'pane', '--tmux-server', 'test', '--logs', '--watch'], { env, timeoutMs: 60_000 })
    await watching.says('1 window: 1 new')
    writeFileSync(join(at.logs, 'b.log'), '')
    await watching.says('2 windows: 1 new')
    at.tmux('kill-server')
    await watching.says('2 windows: 2 new')
    process.kill(watching.pid, 'SIGTERM')
    expect((await watching.result).code).toBe(0)
    expect(at.windows()).toHaveLength(2)
  })
})

describe('nothing comes through', () => {
  real('of what a log could do to a terminal: only text and colours are shown', async () => {
    await using at = stage()
    const hostile = [
      '\u001b]0;owned title\u0007',
      '\u001b[2J\u001b[H',
      '\u001b]52;c;b3duZWQ=\u0007',
      '\u001bPtmux;\u001b\u001b]0;x\u0007\u001b\\',
      '\u001b[8mhidden\u001b[0m',
      '\u001bkname\u001b\\',
      '\u009b31m',
    ]
    writeFileSync(join(at.logs, 'a.log'), `${hostile.join(' | ')}\n\u001b[31mred\u001b[0m plain\nend\n`)
    await at.pane('--agent', 'a')
    const seen = await at.shows('a', 'end')
    expect(seen).toContain('\\u001b]0;owned title\\u0007')
    expect(seen).toContain('\\u001b[2J')
    expect(seen).toContain('hidden')
    expect(seen).not.toContain('\u001b[8m')
    expect(['39', '0', '22;39'].some((end) => seen.includes(`\u001b[31mred\u001b[${end}m plain`))).toBe(true)
    expect(at.windows()).toEqual(['0 a'])
    expect(at.tmux('display-message', '-p', '-t', '=fleet:a', '#{pane_title}')).not.toContain('owned')
    expect(at.tmux('show-buffer')).toContain('no buffers')
  })

  real('of links in the folder of logs, and of our secrets into the environment of tmux', async () => {
    await using at = stage()
    symlinkSync('/etc/passwd', join(at.logs, 'a.log'))
    await at.pane('--agent', 'a')
    await at.shows('a', 'ELOOP')
    expect(at.tmux('show-environment', '-g')).toContain('TMUX_TMPDIR=')
    expect(at.tmux('show-environment', '-g')).not.toContain('secret')
  })
})

describe('a pane that is not wanted or not possible', () => {
  test('an empty session name is off, and says so', async () => {
    await using at = stage('')
    expect(await at.pane('--agent', 'a')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('is empty, so no pane is opened'),
    })
  })

  real('a name that tmux would change is changed before, and said', async () => {
    await using at = stage('a.b:c d')
    expect((await at.pane('--agent', 'a')).stderr).toContain('called "a_b_c_d"')
    expect(at.tmux('list-sessions', '-F', '#{session_name}')).toBe('a_b_c_d')
  })

  test('without tmux it says what to install', async () => {
    using at = nest()
    // The launcher of the sources needs these.
    for (const program of ['readlink', 'sh', 'dirname']) symlinkSync(Bun.which(program) ?? '', join(at.dir, program))
    const { code, stderr } = await at.run(['control', 'pane', '--agent', 'a'], { env: { PATH: at.dir } })
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('install the package "tmux"') })
  })
})

real('killing tmux ends no process of a run, and its log goes on', async () => {
  await using at = stage()
  const log = join(at.logs, 'a.log')
  const run = Bun.spawn(['sh', '-c', 'while :; do echo tick; sleep 0.1; done'], { stdout: Bun.file(log), stdin: 'ignore' })
  await at.pane('--agent', 'a')
  await at.shows('a', 'tick')
  const follower = Number(at.tmux('display-message', '-p', '-t', '=fleet:a', '#{pane_pid}'))
  expect(runs(follower)).toBe(true)
  at.tmux('kill-server')
  await until(() => !runs(follower))
  const before = Bun.file(log).size
  await until(() => Bun.file(log).size > before)
  expect(run.exitCode).toBeNull()
  run.kill()
})
