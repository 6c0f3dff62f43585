/**
 * Processes of one home that run turns and are killed at random instants, while another process follows the events and is killed and resumed
 * as well: what it saw in all its lives is what the journal has, in order, without gap or double. CRASH_SEED repeats one.
 */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { HostEvent } from '../../src/host/events/host-event.ts'
import { executable, nest } from '../support/cli.ts'
import { hostOf } from '../support/host.ts'
import { repetitions } from '../support/tier.ts'
import { randomFrom } from './home.ts'

const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
/** How many turns each lane begins. */
const strikes = repetitions({ fast: 6, deep: 10 })
const watcher = join(import.meta.dir, '../support/watch-events.ts')

type Watched = { readonly state: string; readonly workspace: string; readonly lifeMs: () => number }
type Watching = { readonly seen: string[]; readonly lives: number }

test('two processes that are killed in turns and a follower that is killed too: no event is missing or doubled', async () => {
  console.log(`CRASH_SEED=${seed}`)
  using at = nest()
  const random = randomFrom(seed)
  at.config('')
  at.file('notes.md', 'hello\n')
  const fixture = at.fixture([
    {
      tool_calls: [
        { name: 'file_read', arguments: { path: 'notes.md' } },
        { name: 'file_write', arguments: { path: 'a', content: 'b' } },
      ],
    },
    { tool_calls: [{ name: 'shell', arguments: { command: 'cat notes.md' } }] },
    { text: 'done' },
  ])
  const state = join(at.home, '.braidclaw')
  const run = () => Bun.spawn([executable, 'agent', '-m', 'go'], child(at.workspace, { ...at.env, BRAIDCLAW_MOCK_FIXTURE: fixture }))
  // The home exists before anybody follows it.
  await run().exited
  // Two turns side by side take longer than one, and so it is below.
  const before = performance.now()
  await Promise.all([run().exited, run().exited])
  const usualMs = performance.now() - before
  const over = { yes: false }
  // About twice as many lives as a lane has turns, however fast the machine is.
  const lifeMs = () => usualMs * (0.3 + random() * 0.6)
  const watching = watch(() => over.yes, { state, workspace: at.workspace, lifeMs })
  const work = async () => {
    for (let count = 0; count < strikes; count += 1) {
      const turn = run()
      // Each part of the time that a turn may take is struck once by each lane.
      const late = setTimeout(() => turn.kill('SIGKILL'), usualMs * (0.3 + ((count + random()) / strikes) * 1.2))
      await turn.exited
      clearTimeout(late)
    }
  }
  await Promise.all([work(), work()])
  // The last start repairs what the dead left.
  await run().exited
  const host = await hostOf(state, at.workspace)
  const last = host.events.latest()
  const whole: string[] = []
  for await (const event of host.events.subscribe({ after: 0 })) {
    if (event.id !== undefined) whole.push(lineOf(event))
    if ((event.seq ?? 0) >= last && event.event.type === 'run_ended') break
  }
  over.yes = true
  const count = (word: string) => whole.filter((line) => line.includes(word)).length
  const { seen, lives } = await watching
  await host.close()
  expect(whole.length).toBeGreaterThan(40)
  // A test that always strikes too early or too late proves nothing.
  expect(count(' run_started ')).toBeGreaterThan(5)
  expect(count(' error ')).toBeGreaterThan(0)
  expect(seen).toEqual(whole)
  expect(lives).toBeGreaterThan(3)
}, 120_000)

const lineOf = ({ id, runId, event }: HostEvent) => `${id} ${event.type} ${runId ?? ''}`

function child(cwd: string, env: { readonly [name: string]: string | undefined }) {
  return { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' } as const
}

/** Follows until it has seen everything after the work is over; each life continues after the last complete line of the one before. */
async function watch(isOver: () => boolean, { state, workspace, lifeMs }: Watched): Promise<Watching> {
  const seen: string[] = []
  let lives = 0
  for (let quiet = 0; quiet < 1; ) {
    const after = seen.at(-1)?.split(' ')[0] ?? '0'
    const follower = Bun.spawn(
      [process.execPath, watcher, state, workspace, after],
      child(workspace, { HOME: workspace, PATH: process.env.PATH }),
    )
    const wasOver = isOver()
    setTimeout(() => follower.kill('SIGKILL'), wasOver ? 2_000 : lifeMs())
    const lines = (await follower.stdout.text()).split('\n').slice(0, -1)
    await follower.exited
    seen.push(...lines)
    lives += 1
    if (wasOver) quiet += 1
  }
  return { seen, lives }
}
