import { describe, expect, test } from 'bun:test'
import { collect, stage } from '../../../test/support/agent.ts'
import { after, always, oneCall, run } from '../../../test/support/own-threads.ts'
import type { RunEvent } from '../event.ts'
import { prepareThread } from './prepare-thread.ts'
import type { Thread } from './thread.ts'
import { veto } from './thread.ts'

describe('a call of a thread', () => {
  /** Requests one call after the event, once only. */
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
  const activeAgent = after('tool.done', { request: [{ type: 'user.tests', passed: true }] }, { name: 'speaker' })
  const once: Thread<number> = {
    ...activeAgent,
    init: 0,
    bid: (n) => (n === 1 ? activeAgent.bid(true) : { wait: [{ type: 'tool.done' }] }),
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
      said.push(await staged.agent.addThread(prepareThread(never)), staged.log.includes('thread.add'))
    })
    expect([said, staged.acted[0]]).toEqual([[undefined, true], 'a'])
    await collect(staged.agent, 'again')
    expect(staged.log.filter((line) => line === 'thread.add')).toHaveLength(2)
    expect(await staged.agent.addThread(prepareThread(never))).toBe('thread "user/never" is there already; give this one another name')
  })

  test('stops a call that waits for a yes', async () => {
    const staged = stage({ ...oneCall, verdicts: { a: { verdict: 'ask' } } })
    await collect(staged.agent, 'go', async (event) => {
      if (event.type !== 'approval_gate') return
      expect(await staged.agent.addThread(prepareThread(always('wall', { block: [{ type: 'act' }] })))).toBeUndefined()
      await staged.agent.approve(event.gateId, { allow: true, by: 'ann' })
    })
    expect([staged.acted, staged.agent.ending()?.code]).toEqual([[], 'stalled'])
  })

  test('is rejected by a thread that blocks that, and is not there in later runs', async () => {
    const staged = stage({ ...oneCall, threads: [after('act', { block: [{ type: 'thread.add' }] }, { name: 'seal' })] })
    await collect(staged.agent, 'go', async (event) => {
      if (event.type === 'tool_result')
        expect(await staged.agent.addThread(prepareThread(never))).toBe('thread "user/never" was rejected by user/seal')
    })
    await collect(staged.agent, 'again')
    expect(staged.log.filter((line) => line === 'thread.add')).toHaveLength(2)
  })

  test('is told what is wrong with it', () => {
    expect(() => prepareThread(always('x', { request: [{ type: 'act' } as never] }))).toThrow('thread "user/x" requests "act"')
  })
})
