import { describe, expect, test } from 'bun:test'
import { type Script, stage } from '../../../test/support/agent.ts'
import { isDeep } from '../../../test/support/tier.ts'
import { createMemoryStage, recordSteps } from '../../memory/fixture.ts'
import { outcomeUnknown } from '../../memory/recovery/interrupted-runs.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { interruptedTurn } from './interrupted-turn.ts'

/** A world that outlives the processes: the calls that ran, and the checks. The work is done after three calls. */
function createWorld(own: Partial<Script> = {}) {
  const memoryStage = createMemoryStage()
  const { memory } = memoryStage
  const record = recordSteps({ memory, log: () => {}, now: () => memoryStage.clock.now++, redact: (event) => event })
  const did: string[] = []
  const state: { batches: number; dieAt: number; run?: RunIdentity; open?: ReadonlySet<string> } = { batches: 0, dieAt: 0 }
  const context = () => memory.context('conversation-1', 100_000, state.open)
  const staged = stage({
    replies: [],
    get history() {
      return state.open ? context().messages : []
    },
    get openMessages() {
      return state.open ? (context().openMessages ?? 0) : 0
    },
    // One call in each iteration, and then "done".
    reply: ({ messages }) => {
      const since = messages.findLastIndex(({ role }) => role === 'user')
      const iteration = messages.filter(({ role }) => role === 'user').length
      return messages.slice(since).some(({ role }) => role === 'tool') ? { text: 'done' } : { calls: [{ id: `c${iteration}` }] }
    },
    act: async ({ id }) => {
      did.push(id.replace(/~\d+$/, ''))
      return { status: 'allowed', output: `did ${id}` }
    },
    checks: {
      names: ['one', 'two'],
      findings: [async () => ({ pass: new Set(did).size >= 3, evidence: `${new Set(did).size} of 3`, tree: `tree ${new Set(did).size}` })],
    },
    commit: async (batch, run) => {
      state.run = run
      state.batches += 1
      if (state.batches === state.dieAt) throw new Error('killed')
      record.write(run, batch)
    },
    ...own,
  })

  /** Runs or continues the turn in a process that dies when it writes its nth batch. */
  async function live(dieAt: number): Promise<{ events: AgentEvent[]; ending: Ending | undefined }> {
    Object.assign(state, { batches: 0, dieAt })
    const { prompt, continues } = (await next()) ?? { prompt: 'go', continues: undefined }
    state.open = continues && new Set(continues.proposals.map(({ call }) => call.id))
    const events: AgentEvent[] = []
    for await (const event of staged.agent.run(prompt, continues)) events.push(event)
    const { run } = state
    if (run && memory.journal.hasEntries(run.runId) && memory.journal.run(run.runId)?.ended === null) die(run)
    return { events, ending: staged.agent.ending() }
  }

  /** Leaves what a crash and the repair after it leave. */
  function die(run: RunIdentity): void {
    for (const { intents, runId } of memory.journal.unfinished())
      for (const { callId } of runId === run.runId ? intents : [])
        record.external(run, { type: 'tool.done', id: callId, outcome: { status: 'failed', output: '', error: outcomeUnknown } })
    memory.journal.end(run.runId, { at: 1, code: 'error', message: 'died', digest: null })
  }

  async function next() {
    const found = await interruptedTurn({ memory, conversationId: 'conversation-1', workspace: '/w', isIdempotent: async () => true })
    return typeof found === 'string' ? undefined : found.continueWith(new Map())
  }

  return { ...staged, did, live, next, remove: memoryStage.remove, context, memory }
}

const never = Number.POSITIVE_INFINITY
const countsOf = (events: readonly AgentEvent[]) => events.flatMap((event) => (event.type === 'iteration' ? [event.count] : []))

describe('a wiggum run that is killed', () => {
  test('is not killed at all in the first place: three iterations', async () => {
    const world = createWorld()
    await world.agent.setMode({ newMode: 'wiggum' })
    const { events, ending } = await world.live(never)
    expect([ending?.code, countsOf(events), world.did]).toEqual(['answered', [1, 2, 3], ['c1', 'c2', 'c3']])
    // Only the task is a question; the evidence is none.
    expect(world.memory.store.sql<{ turns: number }, []>('SELECT turns FROM conversations').get()).toEqual({ turns: 1 })
    world.remove()
  })

  test('at any step, once or twice, goes on in the iteration where it stood, and does nothing again that has a result', async () => {
    const crashes: [number, number][] = []
    for (let first = 1; first <= 18; first += 1) for (let second = 1; second <= 18; second += isDeep ? 1 : 9) crashes.push([first, second])
    for (const [first, second] of crashes) {
      const world = createWorld()
      await world.agent.setMode({ newMode: 'wiggum' })
      const at = `${first} ${second}`
      let end: Awaited<ReturnType<typeof world.live>> | undefined
      for (const dieAt of [first, second, never]) if (end?.ending?.code !== 'answered') end = await world.live(dieAt)
      expect([at, end?.ending?.code]).toEqual([at, 'answered'])
      expect([at, end?.events.at(-1)]).toEqual([at, { type: 'done', stopReason: 'end_turn', result: 'done', iterations: 3 }])
      expect([at, [...new Set(world.did)]]).toEqual([at, ['c1', 'c2', 'c3']])
      // A call that began and has no result runs again, because this tool may; no more than one at each death.
      expect([at, world.did.length <= 5]).toEqual([at, true])
      const texts = world.context().messages.filter(({ role }) => role === 'user').length
      expect([at, texts]).toEqual([at, 3])
      world.remove()
    }
  })

  test('after its reply goes straight on with the checks: the model is not asked again', async () => {
    const world = createWorld({ replies: [{ text: 'done' }], reply: undefined })
    await world.agent.setMode({ newMode: 'wiggum' })
    world.did.push('a', 'b', 'c')
    await world.live(4)
    const { events, ending } = await world.live(never)
    expect([ending?.code, world.requests.length, countsOf(events)]).toEqual(['answered', 1, [1]])
    world.remove()
  })
})

describe('a wiggum run that ended', () => {
  test('at its limit goes on when the limit is raised, and the model reads the last failure', async () => {
    const world = createWorld()
    await world.agent.setMode({ newMode: 'wiggum', maxIterations: 2 })
    expect((await world.live(never)).ending?.code).toBe('limit')
    const same = await world.live(never)
    expect([same.ending?.code, countsOf(same.events), world.did]).toEqual(['limit', [2], ['c1', 'c2']])
    await world.agent.setMode({ newMode: 'wiggum', maxIterations: 3 })
    const { events, ending } = await world.live(never)
    expect([ending?.code, countsOf(events), world.did]).toEqual(['answered', [2, 3], ['c1', 'c2', 'c3']])
    expect(JSON.stringify(world.requests.at(-1)?.messages)).toContain('2 of 3')
    world.remove()
  })

  test('goes on as a wiggum run although the mode was set back, and not without checks', async () => {
    const world = createWorld()
    await world.agent.setMode({ newMode: 'wiggum' })
    await world.live(6)
    await world.agent.setMode({ newMode: 'structured' })
    expect((await world.live(8)).events.some(({ type }) => type === 'iteration')).toBe(true)
    const { continues } = (await world.next()) ?? {}
    const bare = stage({ replies: [{ text: 'done' }] })
    expect(bare.agent.run('', continues).next()).rejects.toThrow('modes: wiggum mode needs checks')
    world.remove()
  })

  test('is not continued with other checks, not even at the second try', async () => {
    const world = createWorld()
    await world.agent.setMode({ newMode: 'wiggum' })
    await world.live(6)
    const { continues } = (await world.next()) ?? {}
    const other = stage({ replies: [{ text: 'done' }], checks: { names: ['one'], findings: [{ pass: true, evidence: '' }] } })
    for await (const _ of other.agent.run('', continues));
    expect([other.agent.ending()?.code, other.checked, other.requests]).toEqual(['checks_failed', [], []])
    world.remove()
  })

  test('because a check could not be run ended for good', async () => {
    const world = createWorld({ checks: { names: ['one'], findings: [{ notRun: true }] } })
    await world.agent.setMode({ newMode: 'wiggum' })
    expect([(await world.live(never)).ending?.code, await world.next()]).toEqual(['checks_failed', undefined])
    world.remove()
  })

  test('over its budget before it died has it still spent', async () => {
    const world = createWorld({ limits: { maxTokens: 80 } })
    await world.agent.setMode({ newMode: 'wiggum' })
    await world.live(10)
    const { continues } = (await world.next()) ?? {}
    expect(continues?.wiggum?.tokens).toBe(60)
    const { ending } = await world.live(never)
    expect([ending?.code, world.requests.length]).toEqual(['budget', 6])
    world.remove()
  })
})
