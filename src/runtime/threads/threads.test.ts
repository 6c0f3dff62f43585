import { describe, expect, test } from 'bun:test'
import { collect, kinds, type Script, stage } from '../../../test/support/agent.ts'
import { after, always, oneCall, run } from '../../../test/support/own-threads.ts'
import type { AnyUserThread, Thread, ThreadBid, ThreadEvent } from './thread.ts'
import { veto } from './thread.ts'

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
