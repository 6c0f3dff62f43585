import { expect, test } from 'bun:test'
import { type Reply, stage } from '../../../../test/support/agent.ts'
import { dice } from '../../../../test/support/dice.ts'
import { repetitions } from '../../../../test/support/tier.ts'
import type { AgentEvent, CheckFinding, ExternalEvent, FailureCode, Judgement } from '../../event.ts'
import type { RecordEntry } from '../../port.ts'
import { externalOf, type ReplayEntry } from '../../replay/external-entry.ts'
import { journalled } from '../../replay/recorded.fixture.ts'
import { replayRun } from '../../replay/replay.ts'

type Roll = (sides: number) => number

/** Chooses what a bad model does next: works, declares victory, says nothing, repeats itself, asks for what it may not do, or fails. */
function badReply(roll: Roll, at: number): Reply {
  const id = `c${at}`
  const replies: Reply[] = [
    { text: 'all tests pass' },
    { fail: 'empty' },
    { calls: [{ id, input: { same: 'yes' } }] },
    {
      calls: [
        { id, input: { at: id } },
        { id: `${id}b`, input: { at: id } },
      ],
    },
    { text: 'The check "one" passed. {"done": true}', calls: [{ id }] },
    { calls: [{ id: `ask${at}` }] },
    { calls: [{ id: `deny${at}` }] },
    { fail: (['server', 'refused', 'timeout'] satisfies FailureCode[])[roll(3)] },
  ]
  return replies[roll(roll(4) === 0 ? replies.length : 7)] ?? {}
}

function finding(roll: Roll): CheckFinding {
  const tree = `t${roll(2)}`
  if (roll(20) === 0) return { pass: false, evidence: 'it is missing', notRun: true }
  return roll(2) === 0 ? { pass: true, evidence: '', tree } : { pass: false, evidence: `failure ${roll(2)}`, tree }
}

/** Tells whether the journal ends with the passes of all checks on one tree, with nothing between the last reply and them. */
function endsChecked(events: readonly ExternalEvent[], checks: number): boolean {
  const last = events.slice(-checks)
  const trees = new Set(last.map((event) => event.type === 'check.done' && event.pass && event.tree))
  const before = events.at(-checks - 1)
  const isReply =
    (before?.type === 'model.done' && before.proposals.length === 0) || (before?.type === 'model.fail' && before.code === 'empty')
  return last.length === checks && trees.size === 1 && !trees.has(false) && isReply
}

test('whatever a model does, a wiggum run ends, ends well only on passed checks, asks nobody, keeps its limits, and replays byte for byte', async () => {
  const codes = new Map<string, number>()
  for (let seed = 1; seed <= repetitions({ fast: 300, deep: 20_000 }); seed += 1) {
    const roll = dice(seed)
    const entries: ReplayEntry[] = []
    const maxIterations = 1 + roll(5)
    const names = ['one', 'two'].slice(0, 1 + roll(2))
    const limits = { maxToolRounds: 3, maxParallel: 1 + roll(2), maxSameResults: 4, ...(roll(4) === 0 ? { maxTokens: 60 } : {}) }
    const verdicts = new Proxy<Record<string, Partial<Judgement>>>({}, { get: (_, id) => verdictOf(String(id)) })
    const { agent, checked, acted } = stage({
      replies: [],
      reply: ({ messages }) => badReply(roll, messages.length * 100 + entries.length),
      verdicts,
      limits,
      checks: { names, findings: [async () => finding(roll)] },
      commit: async (batch: readonly RecordEntry[]) => {
        for (const entry of batch.flatMap((each) => journalled(each) ?? []))
          entries.push({ ...entry, seq: entries.length + 1, body: JSON.parse(JSON.stringify(entry.body)) })
      },
    })
    await agent.setMode({ newMode: 'wiggum', maxIterations, maxSame: 2 + roll(2) })
    const stopAt = roll(6) === 0 ? roll(12) : -1
    const events: AgentEvent[] = []
    for await (const event of agent.run('go')) if (events.push(event) - 1 === stopAt) roll(2) === 0 ? agent.cancel() : agent.stop('now')
    const code = agent.ending()?.code ?? 'none'
    codes.set(code, (codes.get(code) ?? 0) + 1)
    const externals = entries.flatMap((entry) => externalOf(entry) ?? [])
    expect([seed, code === 'answered', code === 'answered' ? endsChecked(externals, names.length) : false]).toEqual([
      seed,
      code === 'answered',
      code === 'answered',
    ])
    const counts = events.flatMap((event) => (event.type === 'iteration' ? [event.count] : []))
    expect([seed, counts, events.at(-1)]).toEqual([
      seed,
      counts.map((_, at) => at + 1),
      expect.objectContaining({ type: 'done', iterations: counts.length }),
    ])
    expect([seed, counts.length <= maxIterations, events.some(({ type }) => type === 'approval_gate')]).toEqual([seed, true, false])
    expect([seed, acted.filter((id) => /^(ask|deny)/.test(id))]).toEqual([seed, []])
    expect([seed, new Set(checked).size]).toEqual([seed, checked.length])
    const shown = events.filter((event) => event.type !== 'text' || !event.isPartial)
    const replay = replayRun({ runId: agent.runId() ?? '', entries, limits })
    expect([seed, replay.divergence, replay.ended]).toEqual([seed, undefined, true])
    expect([seed, JSON.stringify(replay.events)]).toEqual([seed, JSON.stringify(shown)])
  }
  expect([...codes.keys()].sort()).toEqual(['answered', 'budget', 'cancelled', 'checks_failed', 'estop', 'limit', 'provider', 'timeout'])
})

function verdictOf(id: string): Partial<Judgement> | undefined {
  if (id.startsWith('ask')) return { verdict: 'ask' }
  return id.startsWith('deny') ? { verdict: 'deny', rule: 'path.outside' } : undefined
}
