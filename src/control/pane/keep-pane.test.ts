import { expect, test } from 'bun:test'
import { isAgentName, type PaneWindow, planWindows, type SessionName, sessionName } from './keep-pane.ts'

const wanted = (agent: string, log = 'here') => ({ agent, log, path: `/${agent}.log` })
const present = (id: string, agent: string, more: Partial<PaneWindow> = {}): PaneWindow => ({
  id,
  agent,
  log: 'here',
  dead: false,
  ...more,
})

test('each agent without a window gets one, and what is right stays', () => {
  expect(planWindows([wanted('a'), wanted('b')], [present('@1', 'a')])).toEqual([{ do: 'create', window: wanted('b') }])
})

test('a window that ended, or follows another file, is used again', () => {
  const steps = planWindows([wanted('a'), wanted('b')], [present('@1', 'a', { dead: true }), present('@2', 'b', { log: 'elsewhere' })])
  expect(steps).toEqual([
    { do: 'respawn', id: '@1', window: wanted('a') },
    { do: 'respawn', id: '@2', window: wanted('b') },
  ])
})

test('a second window of one agent and one of an agent that is gone are closed; what is not ours is not', () => {
  const windows = [
    present('@1', 'a'),
    present('@2', 'a'),
    present('@3', 'gone', { dead: true }),
    present('@4', ''),
    present('@5', '', { dead: true }),
  ]
  expect(planWindows([wanted('a')], windows)).toEqual([
    { do: 'close', id: '@2' },
    { do: 'close', id: '@3' },
  ])
})

const names: readonly (readonly [given: string | undefined, SessionName])[] = [
  [undefined, { on: true, name: 'clawdie-controlplane', changed: false }],
  ['', { on: false }],
  ['  ', { on: false }],
  ['fleet', { on: true, name: 'fleet', changed: false }],
  ['a.b:c', { on: true, name: 'a_b_c', changed: true }],
  ['-d', { on: true, name: '_d', changed: true }],
  ['=x', { on: true, name: '_x', changed: true }],
  ['$(id)', { on: true, name: '__id_', changed: true }],
]
test.each(names)('the session name %j', (given, name) => expect(sessionName(given)).toEqual(name))

test.each([
  ['sysadmin', true],
  ['a.b-c_1', true],
  ['../x', false],
  ['-x', false],
  ['a b', false],
  ['a;b', false],
  ['', false],
  ['x'.repeat(65), false],
])('%j is an agent’s name: %p', (name, is) => expect(isAgentName(name)).toBe(is))
