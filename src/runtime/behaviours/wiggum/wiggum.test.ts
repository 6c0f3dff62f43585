import { describe, expect, test } from 'bun:test'
import { collect, kinds, type Script, type Stage, stage } from '../../../../test/support/agent.ts'
import type { AgentEvent, CheckFinding } from '../../event.ts'
import type { Thread } from '../../threads/thread.ts'

const pass: CheckFinding = { pass: true, evidence: '', tree: 't' }
const fail = (evidence = 'no', tree = 't'): CheckFinding => ({ pass: false, evidence, tree })
const done = { text: 'done' }

/** Runs one task in wiggum mode with these checks. */
async function wiggum(
  script: Partial<Script>,
  findings: readonly (CheckFinding | ((signal: AbortSignal) => Promise<CheckFinding>))[],
  more = {},
) {
  const staged = stage({ replies: [done], checks: { names: ['one'], findings }, ...script })
  expect(await staged.agent.setMode({ newMode: 'wiggum', ...more })).toBeUndefined()
  return { ...staged, events: await collect(staged.agent, 'go'), ending: staged.agent.ending() }
}

const contents = ({ requests }: Pick<Stage, 'requests'>) =>
  (requests.at(-1)?.messages ?? []).map((message) => (message.role === 'assistant' ? 'reply' : message.content))
const last = (events: readonly AgentEvent[]) => events.at(-1)

describe('setMode', () => {
  test.each([
    ['no checks', {}, 'modes: wiggum mode needs checks that end a run, and this conversation has none'],
    ['an empty list of checks', { checks: { names: [], findings: [] } }, 'modes: wiggum mode needs checks'],
    ['no sandbox', { checks: { names: ['one'], findings: [pass] }, sandbox: 'none' as const }, 'modes: wiggum mode needs the sandbox'],
  ])('is refused with %s, and the run is structured', async (_, script: Partial<Script>, why) => {
    const staged = stage({ replies: [done], ...script })
    expect(await staged.agent.setMode({ newMode: 'wiggum' })).toStartWith(why)
    expect(kinds(await collect(staged.agent, 'go'))).toBe('init text done')
    expect(staged.checked).toEqual([])
  })

  test.each([{ maxIterations: 0 }, { maxIter: -1 }, { maxIterations: 1.5 }, { maxIterations: Number.NaN }, { maxSame: 0 }, { until: -5 }])(
    'is refused with %o',
    async (limit) => {
      const { agent } = stage({ replies: [done], checks: { names: ['one'], findings: [pass] } })
      expect(await agent.setMode({ newMode: 'wiggum', ...limit })).toMatch(/^modes: \w+ is \S+; give a whole number from 1$/)
    },
  )

  test('counts before the first run, by either name of the limit, and until it is set back', async () => {
    const { events, ending, agent } = await wiggum({}, [fail()], { maxIter: 2 })
    expect([kinds(events), ending?.code]).toEqual(['init iteration text iteration text error done', 'limit'])
    expect(await agent.setMode({ newMode: 'structured' })).toBeUndefined()
    expect(kinds(await collect(agent, 'again'))).toBe('init text done')
  })

  test('in the middle of a run the mode stays, and only the limit of iterations changes', async () => {
    const staged = stage({ replies: [done], checks: { names: ['one'], findings: [fail('a'), fail('b'), fail('c')] } })
    await staged.agent.setMode({ newMode: 'wiggum', maxIterations: 3 })
    const said: (string | undefined)[] = []
    await collect(staged.agent, 'go', async (event) => {
      if (event.type !== 'iteration' || event.count !== 1) return
      said.push(await staged.agent.setMode({ newMode: 'structured' }), await staged.agent.setMode({ newMode: 'wiggum', maxIterations: 2 }))
    })
    expect(said).toEqual(['modes: a run keeps its mode; set the mode when it has ended', undefined])
    expect([staged.checked.length, staged.agent.ending()?.code]).toEqual([2, 'limit'])
  })

  test('a structured run does not become a wiggum run', async () => {
    const staged = stage({ replies: [{ calls: [{ id: 'a' }] }, done], checks: { names: ['one'], findings: [pass] } })
    let said: string | undefined
    await collect(staged.agent, 'go', async (event) => {
      if (event.type === 'tool_use') said = await staged.agent.setMode({ newMode: 'wiggum' })
    })
    expect([said, staged.checked]).toEqual(['modes: a run keeps its mode; set the mode when it has ended', []])
  })
})

test('a reply without calls does not end the run: the checks do, and the model reads what failed', async () => {
  const staged = await wiggum({ replies: [done, { calls: [{ id: 'a' }] }, { text: 'now' }] }, [fail('3 tests fail', 't1'), pass])
  expect(staged.log).toEqual([
    ...['run.start', 'model.done', 'check.done', 'retry', 'model.done', 'intent a', 'tool.done', 'model.done', 'check.done'],
    'finish answered',
  ])
  expect(staged.checked).toEqual(['check-1 one', 'check-2 one'])
  const [, , evidence = ''] = contents(staged)
  expect(evidence).toStartWith('[BraidClaw: iteration 1 is over and the work is not done.')
  expect(evidence).toEndWith('The check "one" failed:\n3 tests fail')
  expect(last(staged.events)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'now', iterations: 2 })
  expect(staged.events.flatMap((event) => (event.type === 'iteration' ? [event.count] : []))).toEqual([1, 2])
})

test('checks run in their order, one after the other, and the first failure stops the rest', async () => {
  const { checked, ending } = await wiggum({ checks: { names: ['one', 'two'], findings: [pass, fail('x'), pass, pass] } }, [])
  expect([checked, ending?.code]).toEqual([['check-1 one', 'check-2 two', 'check-3 one', 'check-4 two'], 'answered'])
})

test('checks that passed on different trees did not pass: the run goes on', async () => {
  const other = { ...pass, tree: 'other' }
  const { ending, checked, requests } = await wiggum({ checks: { names: ['one', 'two'], findings: [pass, other, pass, pass] } }, [])
  expect([ending?.code, checked.length]).toEqual(['answered', 4])
  expect(contents({ requests }).at(-1)).toContain('it passed on other files than the checks before it')
})

describe('a model', () => {
  test('that says it is done again and again ends as stalled, whatever the durations say', async () => {
    const { ending, checked } = await wiggum({}, [
      fail('failed in 12 ms at 10:01:02'),
      fail('failed in 1.5s at 10:01:03'),
      fail('failed in 9 ms at 11:00'),
    ])
    expect([ending?.code, checked.length]).toEqual(['limit', 3])
    expect(ending?.message).toBe('the run gets nowhere: files and failure were the same 3 times in a row. The check "one" failed:')
  })

  test('that changes something each time, or whose check says something else, is not stalled: it comes to its limit', async () => {
    for (const findings of [
      [fail('no', 't1'), fail('no', 't2')],
      [fail('a'), fail('b')],
    ]) {
      const { ending, checked } = await wiggum({}, findings, { maxIterations: 6, maxSame: 2 })
      expect([ending?.code, checked.length]).toEqual(['limit', 6])
      expect(ending?.message).toContain('the limit of 6 iterations is reached')
    }
  })

  test('that answers with nothing at all has answered without a call', async () => {
    const { ending, checked } = await wiggum({ replies: [{ fail: 'empty' }, { fail: 'empty' }, done] }, [fail('a'), fail('b'), pass])
    expect([ending?.code, checked.length]).toEqual(['answered', 3])
  })

  test('that fails in the middle ends the run, and no check runs', async () => {
    const { ending, checked, events } = await wiggum({ replies: [{ calls: [{ id: 'a' }] }, { fail: 'server' }] }, [pass])
    expect([ending?.code, checked, last(events)]).toEqual(['provider', [], { type: 'done', stopReason: 'error', iterations: 1 }])
  })

  test('that makes the same call for ever is stopped as in any run', async () => {
    const replies = Array.from({ length: 9 }, (_, at) => ({ calls: [{ id: `c${at}` }] }))
    const { ending, acted, checked } = await wiggum(
      { replies, limits: { maxToolRounds: 50, maxSameResults: 3 }, act: async () => ({ status: 'allowed', output: 'same' }) },
      [pass],
    )
    expect([ending?.code, acted.length, checked]).toEqual(['limit', 3, []])
  })

  test('has the rounds of max_tool_rounds in each iteration', async () => {
    const rounds = (...ids: string[]) => [...ids.map((id) => ({ calls: [{ id }] })), done]
    const limits = { maxToolRounds: 2 }
    const twice = await wiggum({ replies: [...rounds('a', 'b'), ...rounds('c', 'd')], limits }, [fail('x'), pass])
    expect([twice.ending?.code, twice.acted]).toEqual(['answered', ['a', 'b', 'c', 'd']])
    const beyond = await wiggum({ replies: rounds('a', 'b', 'c'), limits }, [pass])
    expect([beyond.ending?.code, beyond.acted]).toEqual(['limit', ['a', 'b']])
  })

  test('that calls after its checks failed and never again gets no second end: checks run after its last reply', async () => {
    const { checked, log } = await wiggum({ replies: [done, { calls: [{ id: 'a' }] }, { calls: [{ id: 'b' }] }, done] }, [fail(), pass])
    expect(checked.length).toBe(2)
    expect(log.slice(-4)).toEqual(['tool.done', 'model.done', 'check.done', 'finish answered'])
  })
})

describe('nobody is asked', () => {
  test('a call that needs a yes is refused at once, and that is evidence, not the end', async () => {
    const { events, acted, ending, requests } = await wiggum(
      { replies: [{ calls: [{ id: 'a' }] }, done], verdicts: { a: { verdict: 'ask', reason: 'medium risk' } } },
      [pass],
    )
    expect([kinds(events), acted, ending?.code]).toEqual(['init iteration tool_use tool_result text done', [], 'answered'])
    expect(contents({ requests }).at(-1)).toBe(
      'Denied by approval.unattended: this needs a yes, and a wiggum run asks nobody (medium risk); find a way without it',
    )
  })

  test('changes that need a yes are dropped', async () => {
    const review = { digest: 'd', verdict: 'ask' as const, rule: 'changes.supervised', reason: 'supervised', summary: 'x', count: 1 }
    const { log, ending } = await wiggum(
      {
        replies: [{ calls: [{ id: 'a' }] }, done],
        act: async () => ({ status: 'allowed', output: 'ran', changes: review }),
        changes: { apply: async (_apply, _signal, ran) => ran, drop: () => {} },
      },
      [pass],
    )
    expect([log.includes('dropped a by approval.unattended'), ending?.code]).toEqual([true, 'answered'])
  })

  test('the rule of two refuses where it would ask', async () => {
    const { acted, log, ending } = await wiggum(
      { replies: [{ calls: [{ id: 's' }] }, done], labels: ['reads_private', 'reads_untrusted'], verdicts: { s: { labels: ['sends'] } } },
      [pass],
    )
    expect([acted, log.includes('denied s by approval.unattended'), ending?.code]).toEqual([[], true, 'answered'])
  })
})

describe('stops', () => {
  test.each([
    ['cancel', 'cancelled'],
    ['stop', 'estop'],
  ] as const)('%s while a check runs aborts it, waits for it, and nothing follows', async (how, code) => {
    const state: { stop?: () => void } = {}
    const aborted = (signal: AbortSignal) =>
      new Promise<CheckFinding>((end) => signal.addEventListener('abort', () => end(fail('aborted'))))
    const check = (signal: AbortSignal) => {
      setTimeout(() => state.stop?.(), 1)
      return aborted(signal)
    }
    const staged = stage({ replies: [done], checks: { names: ['one'], findings: [check] } })
    state.stop = () => (how === 'cancel' ? staged.agent.cancel() : staged.agent.stop('now'))
    await staged.agent.setMode({ newMode: 'wiggum' })
    const events = await collect(staged.agent, 'go')
    expect([staged.agent.ending()?.code, staged.checked.length, staged.requests.length]).toEqual([code, 1, 1])
    expect(events.filter(({ type }) => type === 'iteration').length).toBe(1)
    expect(staged.log).toEqual(['run.start', 'model.done', how === 'cancel' ? 'cancel' : 'estop', 'check.done', `finish ${code}`])
  })

  test('the budget ends the run before the next iteration', async () => {
    const { ending, requests, checked } = await wiggum({ limits: { maxTokens: 20 } }, [fail()])
    expect([ending?.code, requests.length, checked.length]).toEqual(['budget', 1, 1])
  })

  test('a run whose time is over before it begins asks nobody', async () => {
    const { ending, requests } = await wiggum({}, [pass], { until: 1 })
    expect([ending?.code, requests.length]).toEqual(['limit', 0])
    expect(ending?.message).toContain('1970-01-01T00:00:00.001Z')
  })

  test('a run whose time is over while the model thinks ends', async () => {
    const { ending } = await wiggum({ replies: [{ hang: true }] }, [pass], { until: Date.now() + 30 })
    expect(ending?.code).toBe('limit')
  })

  test('a check that cannot be run ends the run', async () => {
    const { ending, checked } = await wiggum({}, [{ ...fail('bwrap is missing'), notRun: true }])
    expect([ending?.code, ending?.message, checked.length]).toEqual(['checks_failed', 'a check could not be run: one: bwrap is missing', 1])
  })

  test('a check port that breaks its promise ends the run as an error', async () => {
    const { ending } = await wiggum({}, [() => Promise.reject(new Error('oops'))])
    expect([ending?.code, ending?.message]).toEqual(['error', 'oops'])
  })
})

test('evidence that is no valid text does not end the run', async () => {
  const { ending, requests } = await wiggum({}, [fail('half a pair: \ud83d'), pass])
  expect([ending?.code, contents({ requests }).at(-1)?.endsWith('half a pair: \ufffd')]).toEqual(['answered', true])
})

test('long evidence keeps its beginning and its end', async () => {
  const { requests } = await wiggum({}, [fail(`begin ${'é'.repeat(20_000)} end`), pass])
  const evidence = contents({ requests }).at(-1) ?? ''
  expect(evidence.length).toBeLessThan(8_400)
  expect([evidence.includes('\nbegin é'), evidence.endsWith('é end'), /… \[cut: 20010 characters, /.test(evidence)]).toEqual([
    true,
    true,
    true,
  ])
})

/** Adds one call, after the first event of a type. */
const adding = (type: 'model.done' | 'check' | 'check.done'): Thread<number> => ({
  name: 'adds',
  init: 0,
  bid: (step) =>
    [{ wait: [{ type: type as 'act' }] }, { request: [{ type: 'propose' as const, id: 't', call: { name: 'tests', input: {} } }] }, {}][
      step
    ] ?? {},
  next: (step) => step + 1,
})

test.each(['model.done', 'check', 'check.done'] as const)(
  "after a call that a developer's thread adds at %s the checks run again",
  async (type) => {
    const threads = [adding(type)]
    const { log, ending, checked } = await wiggum({ threads, checks: { names: ['one', 'two'], findings: [pass] } }, [])
    expect(ending?.code).toBe('answered')
    const after = log.slice(log.indexOf('tool.done'))
    expect(after).toEqual(['tool.done', 'model.done', 'check.done', 'check.done', 'finish answered'])
    expect(checked.length).toBe({ 'model.done': 2, check: 3, 'check.done': 3 }[type])
  },
)

test("a call that a developer's thread adds when a check failed does not take the evidence from the model", async () => {
  const { events, ending, requests } = await wiggum({ threads: [adding('check.done')] }, [fail('3 tests fail'), pass])
  expect([ending?.code, last(events)]).toEqual(['answered', expect.objectContaining({ iterations: 2 })])
  expect(contents({ requests }).some((content) => content.endsWith('3 tests fail'))).toBe(true)
})
