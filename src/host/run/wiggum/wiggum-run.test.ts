import { afterEach, test as always, describe, expect } from 'bun:test'
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Place, place } from '../../../../test/support/host.ts'
import { needs } from '../../../../test/support/needs.ts'
import { createTrust } from '../../../config/trust.ts'
import type { AgentEvent, Part } from '../../../runtime/event.ts'
import { type Provider, ProviderFailure } from '../../../runtime/port.ts'
import type { ReplayEntry } from '../../../runtime/replay/external-entry.ts'
import { temporaryName } from '../../../workspace/sweep.ts'
import type { Host } from '../../api.ts'
import { commandCheck } from '../../checks/find-checks.ts'
import { openHost } from '../../open/open-host.ts'
import { withMemory } from '../../open/open-records.ts'
import { passedTree } from './apply-result.ts'
import { beginWiggum, type WiggumChoices } from './begin-wiggum.ts'
import { reportOf } from './report.ts'
import { foldersOf, listRecords, type WiggumRecord } from './run-copy.ts'
import { type WiggumWork, workOn } from './wiggum-run.ts'

const test = always.if(needs('bwrap'))
const opened: { readonly here: Place; readonly host: Host }[] = []
afterEach(async () => {
  for (const { here, host } of opened.splice(0)) {
    await host.close()
    here[Symbol.dispose]()
  }
})

type Reply = readonly Part[] | ProviderFailure
const says = (text: string): Part[] => [{ type: 'text', text }]
const calls = (name: string, input: Record<string, string>): Part[] => [{ type: 'call', id: crypto.randomUUID(), name, input }]
const down = () => new ProviderFailure('server', 'the server is down')

/** Plays the replies, the last one again and again. */
function scripted(replies: readonly Reply[]): Provider {
  const state = { at: 0 }
  return {
    name: 'scripted',
    capabilities: () => ({ streaming: false, tools: true, thinking: false, contextTokens: 100_000 }),
    async *chat() {
      const reply = replies[Math.min(state.at++, replies.length - 1)] ?? down()
      if (reply instanceof ProviderFailure) throw reply
      const stop = reply.some(({ type }) => type === 'call') ? 'tool_calls' : 'stop'
      yield {
        type: 'done',
        response: { parts: reply, stop, usage: { inputTokens: 10, outputTokens: 1 }, model: 'm', provider: 'scripted' },
      }
    },
  }
}

type Options = Partial<WiggumChoices> &
  Pick<Partial<WiggumWork>, 'rest' | 'show'> & { readonly config?: string; readonly prepare?: (here: Place) => void }

async function run(replies: readonly Reply[], { config = '', prepare, rest, show = () => {}, ...choices }: Options = {}) {
  const here = place(config)
  prepare?.(here)
  const setup = here.setup()
  const host = await openHost(setup, { ahead: false })
  opened.push({ here, host })
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const { signal } = new AbortController()
  const all = { checks: [commandCheck('test -e done.md')], ...choices }
  const record = await beginWiggum({ host, setup, prompt: 'do it', choices: all, channel: 'test', say, signal })
  if (record === undefined) throw new Error('the check passes already')
  const end = await workOn({ host, setup, record, show, say, signal, brought: { provider: scripted(replies) }, ...(rest && { rest }) })
  return { here, host, setup, record, end, lines }
}

/** The record of the only run there is, as it stands on disk. */
const recordNow = () => opened.flatMap(({ host }) => listRecords(host.setup))[0]

const done = calls('file_write', { path: 'done.md', content: 'done\n' })

test('a provider that fails is asked again, and the run goes on where it stood', async () => {
  const waits: number[] = []
  const rest = async (ms: number) => void waits.push(ms)
  // Checks run within the turn, so that they need no room for another one.
  const config = '[limits]\nmax_turns_at_once = 1\n'
  const { end, here, lines } = await run([says('done'), down(), down(), down(), done, says('now')], { rest, config })
  expect([end.ending.code, end.iterations, waits]).toEqual(['answered', 2, [5_000, 10_000, 20_000]])
  expect(lines.filter((line) => line.includes('the provider failed'))).toHaveLength(3)
  expect(readFileSync(join(here.cwd, 'done.md'), 'utf8')).toBe('done\n')
})

test('it is asked until the time is over, and the run can go on later', async () => {
  const { end, setup } = await run([down()], {
    until: Date.now() + 4_000,
    rest: () => Promise.reject(new Error('there is no time to wait')),
  })
  expect([end.ending.code, listRecords(setup)[0]?.state]).toEqual(['provider', 'waiting'])
  expect(end.notes.join('\n')).toContain('to go on: braidclaw agent --wiggum --resume')
})

test('only the tree on which the checks passed is applied', async () => {
  const late = (event: AgentEvent) => {
    const [record] = opened.flatMap(({ host }) => listRecords(host.setup))
    if (event.type === 'done' && record) writeFileSync(join(foldersOf(record).copy, 'notes.md'), 'somebody else was here\n')
  }
  const { end, here } = await run([done, says('ok')], { show: late })
  expect(end.ending).toMatchObject({ code: 'checks_failed', message: expect.stringContaining('not those on which the checks passed') })
  expect(readFileSync(join(here.cwd, 'notes.md'), 'utf8')).toBe('hello\n')
})

test('what is forbidden in the folder, by settings or by rules of the project, is forbidden in the copy', async () => {
  const rule = { name: 'no-c', on: { type: 'propose', tool: 'file_write' }, when: { 'input.path': 'c.md' }, reason: 'not c' }
  const refused: string[] = []
  const show = (event: AgentEvent) => {
    if (event.type === 'tool_result' && event.status === 'failed') refused.push(String(event.output))
  }
  const tries = ['private/x.md', 'c.md', 'free.md'].map((path) => calls('file_write', { path, content: 'x' }))
  const { end, here } = await run([...tries, done, says('ok')], {
    show,
    prepare({ cwd, home }) {
      mkdirSync(join(cwd, 'private'))
      mkdirSync(join(cwd, '.braidclaw/rules'), { recursive: true })
      writeFileSync(join(cwd, '.braidclaw/rules/c.json'), JSON.stringify(rule))
      writeFileSync(join(home, 'config.toml'), `[security]\nforbidden_paths = ["${cwd}/private"]\n`)
      createTrust(join(home, 'trusted_folders')).add(cwd)
    },
  })
  expect(refused).toEqual([expect.stringContaining('forbidden'), expect.stringContaining('rule.no-c')])
  expect([end.ending.code, readFileSync(join(here.cwd, 'free.md'), 'utf8')]).toEqual(['answered', 'x'])
})

test('what would ask for something else than the copy is refused, and the model reads why', async () => {
  const refused: string[] = []
  const show = (event: AgentEvent) => {
    if (event.type === 'tool_result' && event.status === 'failed') refused.push(String(event.output))
  }
  const asks = [calls('http', { url: 'https://example.org/', method: 'GET' }), calls('shell', { command: 'curl https://example.org' })]
  const { end } = await run([...asks, done, says('ok')], { show })
  expect(end.ending.code).toBe('answered')
  expect(refused).toEqual([expect.stringContaining('a wiggum run asks nobody'), expect.stringContaining('a wiggum run asks nobody')])
})

test('a run that stands still ends before its limit, unless it may stand still longer', async () => {
  const { end } = await run([says('done')], { maxIterations: 9 })
  expect(end).toMatchObject({ iterations: 3, ending: { code: 'limit', message: expect.stringContaining('the same 3 times in a row') } })
  expect(end.notes).toEqual(['nothing was changed', expect.stringMatching(/^to go on: braidclaw agent --wiggum --resume conversation_/)])
})

test('with protectTests off the run may change tests; with force it works although the checks pass', async () => {
  const prepare = ({ cwd }: Place) => {
    mkdirSync(join(cwd, 'tests'))
    writeFileSync(join(cwd, 'tests/a.sh'), 'exit 1\n')
    writeFileSync(join(cwd, 'done.md'), '')
  }
  const weaken = calls('file_write', { path: 'tests/a.sh', content: 'exit 0\n' })
  const { here, end, setup } = await run([weaken, says('ok')], { prepare, protectTests: false, force: true })
  expect([end.ending.code, readFileSync(join(here.cwd, 'tests/a.sh'), 'utf8')]).toEqual(['answered', 'exit 0\n'])
  const { host } = opened[0] ?? {}
  const store = (await host?.changes())?.store ?? { show: () => undefined }
  const report = await withMemory(setup, (memory) => reportOf({ setup, memory, store, ref: recordNow()?.runs[0] ?? '' }))
  expect(report.testsChanged).toEqual(['tests/a.sh'])
})

test('a check that says that it runs fewer tests than before does not count as passed', async () => {
  const counting = commandCheck('sh count.sh; test -e done.md')
  const prepare = ({ cwd }: Place) => writeFileSync(join(cwd, 'count.sh'), '. ./n.sh; echo "# tests $n"\n')
  const withCount = (here: Place) => {
    prepare(here)
    writeFileSync(join(here.cwd, 'n.sh'), 'n=5\n')
  }
  const fewer = calls('file_write', { path: 'n.sh', content: 'n=1\n' })
  const { end, lines } = await run([fewer, done, says('ok')], { checks: [counting], prepare: withCount, maxIterations: 1 })
  expect([end.ending.code, lines.some((line) => line.includes('check failed'))]).toEqual(['limit', true])
})

test('a check whose frozen script was changed past every rule fails, and says why', async () => {
  const bypass = (event: AgentEvent) => {
    const record = recordNow()
    if (event.type === 'iteration' && record) writeFileSync(join(foldersOf(record).copy, 'check.sh'), 'exit 0\n')
  }
  const prepare = ({ cwd }: Place) => writeFileSync(join(cwd, 'check.sh'), 'test -e done.md\n')
  const { end } = await run([says('done')], { checks: [commandCheck('sh check.sh')], prepare, show: bypass, maxIterations: 1 })
  expect(end.ending).toMatchObject({ code: 'limit' })
  expect(end.set).toBeDefined()
  const { setup } = opened[0]?.host ?? {}
  const evidence =
    setup &&
    (await withMemory(setup, ({ journal }) => journal.events(recordNow()?.runs[0] ?? ''))).find(({ type }) => type === 'check.done')
  expect(JSON.stringify(evidence)).toContain('is not the one that was frozen: check.sh changed')
})

test('whoever looks at the repository meanwhile is no conflict', async () => {
  const git = (cwd: string, ...words: string[]) =>
    Bun.spawnSync(['git', '-c', 'user.name=me', '-c', 'user.email=me@example.org', ...words], {
      cwd,
      env: { PATH: process.env.PATH, HOME: cwd },
    }).stdout.toString()
  const look = (event: AgentEvent) => {
    const [at] = opened
    if (event.type !== 'tool_result' || !at) return
    utimesSync(join(at.here.cwd, 'notes.md'), new Date(), new Date())
    git(at.here.cwd, 'status')
  }
  const prepare = ({ cwd }: Place) => {
    git(cwd, 'init', '-q')
    git(cwd, 'add', '-A')
    git(cwd, 'commit', '-qm', 'first')
  }
  const commit = calls('shell', {
    command: 'echo done > done.md; git add -A; git -c user.name=m -c user.email=m@example.org commit -qm second',
  })
  const { end, here } = await run([commit, says('ok')], { prepare, show: look })
  expect(end.ending).toEqual({ stop: 'end_turn', code: 'answered', message: '' })
  expect(git(here.cwd, 'log', '--format=%s')).toBe('second\nfirst\n')
})

test('what a killed write left in the copy is no part of the result', async () => {
  const { host, setup, record, end } = await run([says('done')], { maxIterations: 1 })
  expect(end.ending.code).toBe('limit')
  const left = temporaryName()
  writeFileSync(join(foldersOf(record).copy, left), 'half')
  const going = { ...listRecords(setup)[0], maxIterations: 3 } as WiggumRecord
  const provider = scripted([done, says('ok')])
  const { signal } = new AbortController()
  const after = await workOn({ host, setup, record: going, show: () => {}, say: () => {}, signal, brought: { provider } })
  expect([after.ending.code, after.iterations, after.set?.summary]).toEqual(['answered', 2, '1 file: 1 new: done.md'])
})

describe('all checks passed on one tree', () => {
  const passed = (tree: string, pass = true) => ({
    kind: 'external',
    type: 'check.done',
    body: { type: 'check.done', id: 'c', pass, evidence: '', tree },
  })
  const worked = { kind: 'external', type: 'cancel', body: { type: 'cancel', by: 'x' } }
  always.each([
    ['both passed', [worked, passed('a'), passed('a')], 'a'],
    ['one is missing', [worked, passed('a')], undefined],
    ['one failed', [worked, passed('a'), passed('a', false)], undefined],
    ['they ran on different trees', [worked, passed('a'), passed('b')], undefined],
    ['something happened in between', [passed('a'), worked, passed('a')], undefined],
    ['something happened since', [passed('a'), passed('a'), worked], undefined],
  ])('%s', (_, entries, tree) => {
    expect(
      passedTree(
        entries.map((entry, seq) => ({ ...entry, seq }) as ReplayEntry),
        2,
      ),
    ).toBe(tree)
  })
})
