/** Programs with a context, public events, outputs and typed details. */

import { describe, expect, test } from 'bun:test'
import { behavioral, bSync, UnauthorizedEvent, useBehavioral } from './behavioral.ts'

describe('useBehavioral', () => {
  type Details = { process: string; processed: string; ready: undefined; internal: (detail: { n: number }) => void }
  const create = useBehavioral<Details, { prefix: string; seen: string[] }, { said: string }>({
    publicEvents: ['process'],
    bProgram({ trigger, bThreads, bThread, bSync, prefix, seen, emit, disconnect }) {
      bThreads.set({ count: bThread([bSync({ waitFor: 'process' }), bSync({ request: { type: 'internal', detail: { n: 1 } } })], true) })
      trigger.addDisconnectCallback(() => void seen.push('closed'))
      return {
        process: (text) => trigger({ type: 'processed', detail: `${prefix}:${text}` }),
        processed(text) {
          seen.push(text)
          emit({ said: text })
          if (text.endsWith('end')) void disconnect()
        },
        internal: ({ n }) => void seen.push(`n=${n}`),
      }
    },
  })

  test('the context, the handlers and the outputs of one program', async () => {
    const [seen, outputs]: [string[], unknown[]] = [[], []]
    const trigger = await create({ prefix: 'p', seen })
    trigger.onEmit((output) => outputs.push(output))
    trigger({ type: 'process', detail: 'x' })
    expect(seen).toEqual(['n=1', 'p:x'])
    expect(outputs).toEqual([{ said: 'p:x' }])
  })
  test('only public events pass; the message lists them and suggests one', async () => {
    const seen: string[] = []
    const trigger = await create({ prefix: 'p', seen })
    const refused = () => trigger({ type: 'processed', detail: 'x' })
    expect(refused).toThrow(UnauthorizedEvent)
    expect(refused).toThrow(
      'Event type "processed" is not allowed. Only public event types can be triggered: [process]; did you mean "process"?',
    )
    expect(seen).toEqual([])
  })
  test('without public events none passes', async () => {
    const trigger = await useBehavioral({ bProgram: () => ({}) })({})
    expect(() => trigger({ type: 'a' })).toThrow('Only public event types can be triggered: []')
  })
  test('two programs of one description know nothing of each other', async () => {
    const [one, two]: string[][] = [[], []]
    const first = await create({ prefix: '1', seen: one ?? [] })
    await create({ prefix: '2', seen: two ?? [] })
    first({ type: 'process', detail: 'x' })
    expect([one, two]).toEqual([['n=1', '1:x'], []])
  })
  test('it waits for an asynchronous program', async () => {
    const order: string[] = []
    const init = useBehavioral<{ a: undefined }>({
      publicEvents: ['a'],
      async bProgram() {
        await Promise.resolve()
        order.push('program')
        return { a: () => void order.push('a') }
      },
    })
    const trigger = await init({})
    trigger({ type: 'a' })
    expect(order).toEqual(['program', 'a'])
  })
  test('disconnect takes the handlers off and runs each callback once, from outside and from within', async () => {
    const seen: string[] = []
    const trigger = await create({ prefix: 'p', seen })
    await trigger.disconnect()
    await trigger.disconnect()
    trigger({ type: 'process', detail: 'x' })
    expect(seen).toEqual(['closed'])
    const inner: string[] = []
    const other = await create({ prefix: 'p', seen: inner })
    other({ type: 'process', detail: 'end' })
    other({ type: 'process', detail: 'y' })
    expect(inner).toEqual(['n=1', 'p:end', 'closed'])
  })
  test('an emit of the context takes the place of ours', async () => {
    const said: string[] = []
    const trigger = await useBehavioral<{ a: string }, { emit: (text: string) => void }>({
      publicEvents: ['a'],
      bProgram: ({ emit }) => ({ a: (text) => emit(text) }),
    })({ emit: (text) => void said.push(text) })
    trigger({ type: 'a', detail: 'x' })
    expect(said).toEqual(['x'])
  })
  test('details are typed', async () => {
    const trigger = await create({ prefix: 'p', seen: [] })
    // @ts-expect-error a detail of another type
    trigger({ type: 'process', detail: 5 })
    // @ts-expect-error the detail is missing
    expect(() => trigger({ type: 'process' })).not.toThrow()
    // @ts-expect-error no such event
    expect(() => trigger({ type: 'proces', detail: 'x' })).toThrow()
    const program = behavioral<Details>()
    // @ts-expect-error a handler for another detail
    program.useFeedback({ process: (detail: number) => void detail })
    // @ts-expect-error a listener for an event that is not in the map
    bSync<Details>({ waitFor: 'other' })
    bSync<Details>({ waitFor: ({ type, detail }) => type === 'internal' && detail.n > 1 })
    program.trigger({ type: 'ready' })
  })
})
