/** Tests errors in a program: who learns of them, and that the program continues. */

import { describe, expect, test } from 'bun:test'
import { request, start, times, waitFor } from '../../../test/support/behavioral-program.ts'
import { behavioral, bSync, bThread, type Idioms } from '../behavioral.ts'

describe('errors', () => {
  test('a handler that throws is reported, and the program continues', () => {
    const { useFeedback, send, messages } = start({ one: bThread([request('a', { id: 4 }), request('b')]) })
    useFeedback({
      a() {
        throw new TypeError('broken')
      },
    })
    expect(send('go')).toEqual(['go', 'a', 'b'])
    const kinds = messages.map(({ kind }) => kind)
    expect(kinds.indexOf('feedback_error')).toBe(2)
    expect(messages[2]).toEqual({ kind: 'feedback_error', type: 'a', detail: { id: 4 }, error: 'broken' })
  })
  test('what is thrown and is not an Error is spelled as text', () => {
    const { useFeedback, send, messages } = start({})
    useFeedback({
      a() {
        throw 'text'
      },
    })
    send('a')
    expect(messages.at(-1)).toEqual({ kind: 'feedback_error', type: 'a', detail: undefined, error: 'text' })
  })
  test('a rejection comes with its event, to the snapshots', async () => {
    const failed = Promise.withResolvers<unknown>()
    const { useFeedback, useSnapshot, trigger } = start({})
    useSnapshot((message) => void (message.kind === 'feedback_error' && failed.resolve(message)))
    useFeedback({ a: () => Promise.reject(new Error('late')) })
    trigger({ type: 'a', detail: 7 })
    expect(await failed.promise).toEqual({ kind: 'feedback_error', type: 'a', detail: 7, error: 'late' })
  })
  test('with nobody to report to, a rejection is an unhandled one of the process', async () => {
    const source = `import { behavioral } from ${JSON.stringify(`${import.meta.dir}/../behavioral.ts`)}
      const { useFeedback, trigger } = behavioral()
      useFeedback({ a: () => Promise.reject(new Error('nobody')) })
      process.on('unhandledRejection', (error) => { console.log(String(error)); process.exit(3) })
      trigger({ type: 'a' })`
    const child = Bun.spawn([process.execPath, '--config=/dev/null', '-e', source], { stdout: 'pipe', stderr: 'ignore' })
    expect([await child.stdout.text(), await child.exited]).toEqual(['Error: nobody\n', 3])
  })
  test('a program that never rests ends with the last ten events', () => {
    const { trigger, bThreads } = behavioral({ maxSelections: 50 })
    bThreads.set({ ping: bThread([request('ping')], true), pong: bThread([waitFor('ping'), request('pong')], true) })
    expect(() => trigger({ type: 'go' })).toThrow(
      /^livelock: more than 50 events in a row with no external one between, the last (ping|pong)(, (ping|pong)){9};/,
    )
  })
  test('a chain of exactly as many events as allowed is not a livelock', () => {
    expect(start({ one: times(49, request('a')) }, { maxSelections: 50 }).send('go')).toHaveLength(50)
    expect(() => start({ one: times(50, request('a')) }, { maxSelections: 50 }).send('go')).toThrow('livelock')
  })
  test('two handlers that trigger each other for ever end in the same way', () => {
    const { useFeedback, trigger } = behavioral()
    useFeedback({ ping: () => trigger({ type: 'pong' }), pong: () => trigger({ type: 'ping' }) })
    expect(() => trigger({ type: 'ping' })).toThrow('livelock: more than 10000 events')
  })
  test('a listener that throws is named, and moves nobody', () => {
    const bad = bThread([
      waitFor(({ detail }) => {
        return detail.n === 1
      }),
      request('seen'),
    ])
    const { trigger, happened, bThreads } = start({ bad, good: bThread([waitFor('a'), request('b')]) })
    expect(() => trigger({ type: 'a' })).toThrow('thread "bad": waitFor on "a" threw: ')
    expect(bThreads.has('good')).toEqual({ running: false, pending: true })
    trigger({ type: 'a', detail: { n: 1 } })
    expect(happened.slice(-2)).toEqual(['seen', 'b'])
  })
  test('a listener that returns a promise, a request that is not an event', () => {
    const late = bSync({ waitFor: (async () => true) as never })
    expect(() => start({ late }).send('a')).toThrow('thread "late": waitFor on "a" is a promise; a listener returns true or false')
    const empty = bSync({ request: (() => undefined) as never })
    expect(() => start({ empty }).send('a')).toThrow('thread "empty": request is undefined; an event is an object with a type')
  })
  test('a thread that throws has ended, by its name; the others continue', () => {
    function* bad() {
      yield { waitFor: 'a' }
      throw new Error('boom')
    }
    const { trigger, send, bThreads } = start({ bad, good: bThread([waitFor('a'), request('b')]) })
    expect(() => trigger({ type: 'a' })).toThrow('thread "bad" threw and has ended: boom')
    expect(bThreads.has('bad')).toEqual({ running: false, pending: false })
    expect(send('c')).toEqual(['a', 'c', 'b'])
  })
  test('also one that throws while an event ends it', () => {
    function* bad() {
      try {
        yield { waitFor: 'a', interrupt: 'stop' }
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: this is what is tested
        throw new Error('in finally')
      }
    }
    const { trigger, send, bThreads } = start({ bad, good: bThread([waitFor('stop'), request('b')]) })
    expect(() => trigger({ type: 'stop' })).toThrow('thread "bad" threw and has ended: in finally')
    expect(bThreads.has('bad')).toEqual({ running: false, pending: false })
    expect(send('c')).toEqual(['stop', 'c', 'b'])
  })
  test('what only has a then is waited for, too', async () => {
    const failed = Promise.withResolvers<unknown>()
    const { useFeedback, useSnapshot, send } = start({})
    useSnapshot((message) => void (message.kind === 'feedback_error' && failed.resolve(message.error)))
    const thenable = Object.fromEntries([['then', (_: unknown, refuse: (why: unknown) => void) => refuse('no promise')]])
    useFeedback({ a: () => thenable as never })
    send('a')
    expect(await failed.promise).toBe('no promise')
  })
  test.each<[unknown, string]>([
    [{ waitfor: 'a' }, 'bSync: "waitfor"; a step has request, waitFor, block, interrupt; did you mean "waitFor"?'],
    [{ request: 'a' }, 'request is "a"; an event is an object with a type'],
    [{ block: [5] }, 'block is 5; a listener is an event type, a function or { type, detail }'],
  ])('a step that is wrong: %p', (step, message) => {
    expect(() => bSync(step as Idioms)).toThrow(message)
  })
  test('rules, threads and events that are none', () => {
    expect(() => bThread([{ waitFor: 'a' } as never])).toThrow('bThread: step 0 is { waitFor }; make it with bSync or bThread')
    expect(() => behavioral().bThreads.set({ one: {} as never })).toThrow('bThreads.set: "one" is not a thread')
    expect(() => behavioral().trigger('a' as never)).toThrow('trigger: the event is "a"; an event is an object with a type')
  })
  test('a detail with a circle passes', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    const { trigger, happened } = start({ one: bThread([waitFor({ type: 'a', detail: { self: {} } }), request('seen')]) })
    trigger({ type: 'a', detail: circle })
    expect(happened).toEqual(['a', 'seen'])
  })
})
