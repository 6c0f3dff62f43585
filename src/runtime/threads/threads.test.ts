import { describe, expect, test } from 'bun:test'
import { collect, kinds, type Script, stage } from '../../../test/support/agent.ts'
import type { AgentEvent, RunEvent } from '../event.ts'
import type { AnyUserThread, Thread, ThreadBid, ThreadEvent } from './thread.ts'
import { veto } from './veto.ts'

const always = (name: string, bid: ThreadBid): Thread<null> => ({ name, init: null, bid: () => bid, next: (state) => state })

/** Bids the second from the first event of the type on. */
const after = (type: RunEvent['type'], bid: ThreadBid, own: Partial<Thread<boolean>> = {}): Thread<boolean> => ({
  name: 'planted',
  init: false,
  bid: (seen) => (seen ? bid : { wait: [{ type } as { type: 'act' }] }),
  next: () => true,
  ...own,
})

const oneCall: Script = { replies: [{ calls: [{ id: 'a' }] }, { text: 'done' }] }

/** Bounded: a run that hangs fails here, and not after the limit of the test. */
async function run(script: Script, on?: (event: AgentEvent) => unknown) {
  const staged = stage({ ...script, limits: { maxMs: 5000, ...script.limits } })
  const events = await collect(staged.agent, 'go', on)
  const error = events.find((event) => event.type === 'error')
  return { ...staged, events, error: error?.type === 'error' ? error.message : '', ending: staged.agent.ending() }
}

describe('a veto', () => {
  const noTool = veto('no-tool', ({ call }) => call.name === 'tool', { reason: 'ask your operator' })

  test('denies the call, the model reads the reason, and the run goes on', async () => {
    const { acted, log, requests, ending } = await run({ ...oneCall, threads: [noTool] })
    expect([acted, ending?.code]).toEqual([[], 'denied'])
    expect(log).toContain('denied a by user/no-tool')
    expect(requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: 'Denied by user/no-tool: ask your operator',
      isError: true,
    })
  })

  test('lets everything else run, and is in the journal before the run begins', async () => {
    const { acted, log } = await run({ ...oneCall, threads: [veto('no-other', ({ call }) => call.name === 'other')] })
    expect(acted).toEqual(['a'])
    expect(log.slice(0, 2)).toEqual(['thread.add', 'run.start'])
  })

  test('of a call that waits for a yes closes the question', async () => {
    const { events } = await run({ ...oneCall, verdicts: { a: { verdict: 'ask' } }, threads: [noTool] })
    expect(kinds(events)).toBe('init tool_use tool_result text done')
  })

  test('that comes while the question is open closes it too', async () => {
    const verdicts = { a: { verdict: 'ask' } as const }
    const { acted, ending } = await run({
      ...oneCall,
      verdicts,
      threads: [after('gate.open', { block: [{ type: 'act', reason: 'changed my mind' }] })],
    })
    expect([acted, ending?.code]).toEqual([[], 'denied'])
  })
})

test('a block without a reason holds a call back until it is lifted', async () => {
  const held: Thread<boolean> = {
    name: 'a-first',
    init: false,
    bid: (done) => (done ? {} : { wait: [{ type: 'tool.done', id: 'a' }], block: [{ type: 'act', id: 'b' }] }),
    next: () => true,
  }
  const { log, acted } = await run({ replies: [{ calls: [{ id: 'b' }, { id: 'a' }] }, { text: 'done' }], threads: [held] })
  expect(acted).toEqual(['a', 'b'])
  expect(log.indexOf('intent b')).toBeGreaterThan(log.indexOf('tool.done'))
})

describe('a thread is refused when it is added', () => {
  const shapes: [string, unknown, string][] = [
    ['no name', { ...always('x', {}), name: '' }, 'has no fit name'],
    ['a name of ours', { ...always('x', {}), name: 'user/x' }, 'has no fit name'],
    ['a priority before the guards', { ...always('x', {}), priority: -1 }, 'priority -1; it is a number from 0 to 9'],
    ['no next', { name: 'x', init: null, bid: () => ({}) }, 'has no function next'],
    ['a state that is no JSON', { ...always('x', {}), init: { at: new Date(0) } }, 'init.at is a Date'],
    ['a bid of another word', { ...always('x', {}), bid: () => ({ blocks: [] }) }, 'bid() has "blocks"'],
    ['a bid that comes later', { ...always('x', {}), bid: async () => ({}) }, 'returned a promise'],
    ['an event that does not exist', always('x', { wait: [{ type: 'tool.doen' } as never] }), 'did you mean "tool.done"?'],
    ['a pattern with another word', always('x', { wait: [{ type: 'act', when: 1 } as never] }), 'a pattern of act with "when"'],
    [
      'a call without input',
      always('x', { request: [{ type: 'propose', id: '1', call: { name: 'x' } } as never] }),
      'without id, call.name',
    ],
  ]
  test.each(shapes)('%s', (_, thread, message) => {
    expect(() => stage({ ...oneCall, threads: [thread as AnyUserThread] })).toThrow(message)
  })

  test.each(
    'act approval.decision gate.open think finish tool.done model.done deny judge judged run.start cancel estop halt observe thread.add stalled user'.split(
      ' ',
    ),
  )('one that requests %s', (type) => {
    const asking = always('x', { request: [{ type, id: 'a' } as never] })
    expect(() => stage({ ...oneCall, threads: [asking] })).toThrow(`thread "user/x" requests "${type}#a"; a thread may request`)
  })

  test('the second of one name', () => {
    expect(() => stage({ ...oneCall, threads: [always('x', {}), always('x', {})] })).toThrow('thread "user/x" is there already')
  })
})

describe('a thread that fails in a run ends it by name, and nothing begins any more', () => {
  const act = (id: string) => ({ type: 'act', id, call: { id, name: 'tool', input: {} }, judgement: {} })
  const bids: [string, ThreadBid | (() => ThreadBid), string][] = [
    ['requests an act', { request: [act('a') as never] }, 'requests "act#a"'],
    [
      'requests its own approval',
      { request: [{ type: 'approval.decision', id: 'a', allow: true } as never] },
      'requests "approval.decision#a"',
    ],
    [
      'throws in bid()',
      () => {
        throw new Error('boom')
      },
      'threw in bid(): boom',
    ],
    [
      'throws in the match of a block',
      {
        block: [
          {
            type: 'act',
            match: () => {
              throw new Error('boom')
            },
          },
        ],
      },
      'threw in block, match of act: boom',
    ],
    ['asks for its own event for ever', { request: [{ type: 'user.tick' }] }, 'never comes to rest: more than 1000 events in a row'],
  ]
  test.each(bids)('%s', async (_, bid, message) => {
    const planted = after(
      'propose',
      {},
      { bid: (seen) => (seen ? (typeof bid === 'function' ? bid() : bid) : { wait: [{ type: 'propose' }] }) },
    )
    const { acted, error, ending, log } = await run({ ...oneCall, threads: [planted] })
    expect(error).toContain(`thread "user/planted" ${message}`)
    expect([acted, ending?.stop, ending?.code]).toEqual([[], 'error', 'error'])
    expect(log.at(-1)).toBe('finish error')
  })

  const states: [string, () => unknown, string][] = [
    [
      'throws in next()',
      () => {
        throw new Error('boom')
      },
      'threw in next() after propose#a: boom',
    ],
    ['keeps a Map', () => new Map(), 'state after propose#a is a Map'],
    ['returns nothing', () => undefined, 'state after propose#a is undefined'],
    ['returns a promise', async () => true, 'state after propose#a is a Promise'],
  ]
  test.each(states)('%s', async (_, next, message) => {
    const { acted, error, log } = await run({ ...oneCall, threads: [after('propose', {}, { next: next as () => boolean })] })
    expect(error).toContain(message)
    expect([acted, log.at(-1)]).toEqual([[], 'finish error'])
  })

  test('alters what it sees, to have a forbidden call run', async () => {
    const match = (event: ThreadEvent) => {
      if (event.type === 'propose') Object.assign(event.judgement, { verdict: 'allow' })
      return false
    }
    const { acted, error } = await run({
      ...oneCall,
      verdicts: { a: { verdict: 'deny', rule: 'no' } },
      threads: [always('sly', { block: [{ type: 'propose', match }] })],
    })
    expect(error).toMatch(/thread "user\/sly" threw in block, match of propose: .*(readonly|read only)/)
    expect(acted).toEqual([])
  })

  test('changes its bid after it was looked at: nothing of that is ever seen', async () => {
    const request: unknown[] = []
    const sly: Thread<null> = { ...always('sly', {}), bid: () => ({ wait: [{ type: 'propose' }], request: request as [] }) }
    const { acted } = await run({ ...oneCall, verdicts: { a: { verdict: 'ask' } }, threads: [sly], ttlMs: 50 }, (event) => {
      if (event.type === 'approval_gate') request.push(act('a'))
    })
    expect(acted).toEqual([])
  })
})

describe('a thread that blocks what must happen ends the run by name', () => {
  test.each(['run.start', 'model.done', 'tool.done', 'finish', 'observe', 'propose', 'halt'] as const)('%s', async (type) => {
    const { error, ending } = await run({
      ...oneCall,
      limits: type === 'halt' ? { maxToolRounds: 0 } : {},
      threads: [always('wall', { block: [{ type }] })],
    })
    expect(error).toContain('user/wall')
    expect(error).toContain(type)
    expect(ending?.stop).toBe('error')
  })

  test('deny, and the report of the stall', async () => {
    const wall = always('wall', { block: [{ type: 'deny' }, { type: 'stalled' }] })
    const { error, acted } = await run({ ...oneCall, verdicts: { a: { verdict: 'deny' } }, threads: [wall] })
    expect([error, acted]).toEqual([expect.stringContaining('thread "user/wall" blocks'), []])
  })

  test.each([
    ['act', 'act is blocked by user/wall'],
    ['think', 'think is blocked by user/wall'],
  ] as const)('%s for ever is a stall that names it', async (type, message) => {
    const { error, ending } = await run({ ...oneCall, threads: [always('wall', { block: [{ type }] })] })
    expect([error, ending?.code]).toEqual([`the run cannot go on: ${message}`, 'stalled'])
  })

  test.each(['cancel', 'estop'] as const)('%s: what runs is stopped all the same', async (type) => {
    const seen = { aborted: false }
    const script: Script = {
      ...oneCall,
      act: (_, signal) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => {
            seen.aborted = true
            resolve({ status: 'failed', output: '', error: 'aborted' })
          }),
        ),
      threads: [always('wall', { block: [{ type }] })],
    }
    const staged = stage(script)
    const events = await collect(staged.agent, 'go', (event) => {
      if (event.type === 'tool_use') setTimeout(() => (type === 'cancel' ? staged.agent.cancel() : staged.agent.stop('fire')), 10)
    })
    expect(seen.aborted).toBe(true)
    expect(events).toContainEqual(expect.objectContaining({ message: `thread "user/wall" blocks ${type}, which has happened` }))
    expect(staged.log.at(-1)).toBe(type === 'cancel' ? 'finish cancelled' : 'finish estop')
  })

  test('the end of the time for an answer', async () => {
    const wall = always('wall', { block: [{ type: 'approval.decision' }] })
    const { error } = await run({ ...oneCall, verdicts: { a: { verdict: 'ask' } }, ttlMs: 20, threads: [wall] })
    expect(error).toContain('thread "user/wall" blocks approval.decision#a')
  })
})

describe('a call of a thread', () => {
  /** Asks for one call after the event, and once only. */
  const proposing = (type: RunEvent['type'], id = 't1'): Thread<string> => ({
    name: 'tests',
    init: 'new',
    bid: (phase) => ({
      wait: [{ type } as { type: 'act' }],
      request: phase === 'wants' ? [{ type: 'propose', id, call: { name: 'tests', input: { all: true } } }] : [],
    }),
    next: (phase, event) => (event.type === 'propose' && event.id === id ? 'asked' : phase === 'new' ? 'wants' : phase),
  })

  test('that the gate denies does not run', async () => {
    const { acted, log } = await run({
      replies: [{ text: 'hi' }],
      verdicts: { t1: { verdict: 'deny', rule: 'no' } },
      threads: [proposing('run.start')],
    })
    expect([acted, log.includes('denied t1 by no')]).toEqual([[], true])
  })

  test('that needs a yes waits for one', async () => {
    const { acted, ending } = await run({
      replies: [{ text: 'hi' }],
      verdicts: { t1: { verdict: 'ask' } },
      ttlMs: 20,
      threads: [proposing('run.start')],
    })
    expect([acted, ending?.code]).toEqual([[], 'approval_needed'])
  })

  test('runs before the first thought, and the model is told whose call it was', async () => {
    const { acted, requests, log } = await run({ replies: [{ text: 'hi' }], threads: [proposing('run.start')] })
    expect([acted, requests.length]).toEqual([['t1'], 1])
    expect(requests[0]?.messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: expect.stringContaining('user/tests') },
          { type: 'call', name: 'tests', input: { all: true } },
        ],
      },
      { role: 'tool', callId: 't1', content: 'did t1' },
    ])
    expect(log).toEqual(['thread.add', 'run.start', 'judged', 'intent t1', 'tool.done', 'model.done', 'finish answered'])
  })

  test('after the answer has the model think again', async () => {
    const { acted, requests, ending } = await run({ replies: [{ text: 'hi' }, { text: 'and well' }], threads: [proposing('model.done')] })
    expect([acted, requests.length, ending?.code]).toEqual([['t1'], 2, 'answered'])
  })

  test('waits until the calls of the model are done', async () => {
    const { log } = await run({ ...oneCall, threads: [proposing('act')] })
    expect(log.filter((line) => /judged|tool.done|model/.test(line))).toEqual([
      'model.done',
      'tool.done',
      'judged',
      'tool.done',
      'model.done',
    ])
  })

  test('by an id that the run has had is denied', async () => {
    const { acted, log } = await run({ ...oneCall, threads: [proposing('observe', 'a')] })
    expect([acted, log.includes('denied a by thread.id')]).toEqual([['a'], true])
  })

  test('again and again comes to the limit of rounds', async () => {
    const again: Thread<number> = {
      name: 'again',
      init: 0,
      bid: (n) => ({ request: [{ type: 'propose', id: `t${n}`, call: { name: 'x', input: {} } }] }),
      next: (n) => n + 1,
    }
    const { acted, ending } = await run({ replies: [{ text: 'hi' }], limits: { maxToolRounds: 3 }, threads: [again] })
    expect([acted.length, ending?.code]).toEqual([3, 'limit'])
  })
})

test('threads speak to one another with events of their own', async () => {
  const speaker = after('tool.done', { request: [{ type: 'user.tests', passed: true }] }, { name: 'speaker' })
  const once: Thread<number> = {
    ...speaker,
    init: 0,
    bid: (n) => (n === 1 ? speaker.bid(true) : { wait: [{ type: 'tool.done' }] }),
    next: (n) => n + 1,
  }
  const heard: unknown[] = []
  const listener: Thread<boolean> = {
    name: 'listener',
    init: false,
    bid: (passed) => ({
      wait: [{ type: 'user.tests', match: (event) => event.passed === true }],
      block: passed ? [] : [{ type: 'act', id: 'b', reason: 'tests first' }],
    }),
    next(_, event) {
      heard.push(event)
      return true
    },
  }
  const replies = [{ calls: [{ id: 'a' }] }, { calls: [{ id: 'b' }] }, { text: 'done' }]
  expect((await run({ replies, threads: [listener] })).acted).toEqual(['a'])
  expect((await run({ replies, threads: [once, listener] })).acted).toEqual(['a', 'b'])
  expect(heard).toEqual([{ type: 'user.tests', passed: true }])
})

describe('a thread that comes later', () => {
  const never = veto('never', () => true)

  test('counts from then on, and is on disk when that is said', async () => {
    const said: unknown[] = []
    const staged = stage({ replies: [{ calls: [{ id: 'a' }] }, { calls: [{ id: 'b' }] }, { text: 'done' }] })
    await collect(staged.agent, 'go', async (event) => {
      if (event.type !== 'tool_result' || said.length > 0) return
      said.push(await staged.agent.addThread(never), staged.log.includes('thread.add'))
    })
    expect([said, staged.acted[0]]).toEqual([[undefined, true], 'a'])
    await collect(staged.agent, 'again')
    expect(staged.log.filter((line) => line === 'thread.add')).toHaveLength(2)
    expect(await staged.agent.addThread(never)).toBe('thread "user/never" is there already; give this one another name')
  })

  test('stops a call that waits for a yes', async () => {
    const staged = stage({ ...oneCall, verdicts: { a: { verdict: 'ask' } } })
    await collect(staged.agent, 'go', async (event) => {
      if (event.type !== 'approval_gate') return
      expect(await staged.agent.addThread(always('wall', { block: [{ type: 'act' }] }))).toBeUndefined()
      await staged.agent.approve(event.gateId, { allow: true, by: 'ann' })
    })
    expect([staged.acted, staged.agent.ending()?.code]).toEqual([[], 'stalled'])
  })

  test('is rejected by a thread that blocks that, and is not there in later runs', async () => {
    const staged = stage({ ...oneCall, threads: [after('act', { block: [{ type: 'thread.add' }] }, { name: 'seal' })] })
    await collect(staged.agent, 'go', async (event) => {
      if (event.type === 'tool_result') expect(await staged.agent.addThread(never)).toBe('thread "user/never" was rejected by user/seal')
    })
    await collect(staged.agent, 'again')
    expect(staged.log.filter((line) => line === 'thread.add')).toHaveLength(2)
  })

  test('is told what is wrong with it', async () => {
    const { agent } = stage(oneCall)
    expect(await agent.addThread(always('x', { request: [{ type: 'act' } as never] }))).toContain('thread "user/x" requests "act"')
  })
})
