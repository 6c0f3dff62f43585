import { expect, test } from 'bun:test'
import { createEngine, describe as describeSnapshot, type Snapshot } from './engine.ts'
import type { AnyThread, Bid } from './thread.ts'

type Ev = { readonly type: string; readonly id?: string }

const once = (name: string, bid: Bid<Ev>): AnyThread<Ev> => ({
  name,
  priority: 0,
  init: true,
  bid: (fresh: boolean) => (fresh ? bid : {}),
  next: () => false,
})

test('a snapshot shows who asked, who waited and who was held back when the event was selected', () => {
  const shots: Snapshot<Ev>[] = []
  const threads = [
    once('loop', { request: [{ type: 'think' }] }),
    once('cancel', { block: [{ type: 'think' }] }),
    once('calls', { request: [{ type: 'act', id: '1' }], interrupt: [{ type: 'stop' }] }),
    once('rule', { request: [{ type: 'act', id: '1' }] }),
    once('log', { wait: [{ type: 'act' }] }),
  ]
  const engine = createEngine<Ev>({ threads, trace: (shot) => shots.push(shot) })
  engine.send({ type: 'stop' })
  engine.superstep()
  const blocked = [{ thread: 'loop', event: { type: 'think' }, by: ['cancel'] }]
  expect(shots).toEqual([
    { event: { type: 'act', id: '1' }, source: 'calls', requested: ['calls', 'rule'], waited: ['log'], interrupted: [], blocked },
    { event: { type: 'stop' }, source: 'external', requested: [], waited: [], interrupted: [], blocked },
  ])
  expect(shots.map(describeSnapshot)).toEqual([
    'act#1 from calls; also requested: rule; waited: log; blocked: think of loop by cancel',
    'stop from external; blocked: think of loop by cancel',
  ])
})

test('a snapshot of an external event is taken before it is journalled', () => {
  const order: string[] = []
  const threads = [once('ear', { interrupt: [{ type: 'x' }] })]
  const engine = createEngine<Ev>({
    threads,
    trace: ({ interrupted }) => order.push(`trace ${interrupted}`),
    onExternal: () => order.push('journal'),
  })
  engine.send({ type: 'x' })
  engine.superstep(() => order.push('told'))
  expect(order).toEqual(['trace ear', 'journal', 'told'])
})
