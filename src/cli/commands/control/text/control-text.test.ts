import { expect, test } from 'bun:test'
import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { Agent, Budget } from '../../../../control/contract/fleet-shapes.ts'
import type { Run } from '../../../../control/contract/run-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { statusText } from '../daemon/control-status.ts'
import { approvalLines, approvalText } from '../tasks/control-approvals.ts'
import {
  agentLines,
  budgetText,
  eventLine,
  keyLines,
  lengthText,
  moment,
  operatorLines,
  runLines,
  taskLines,
  taskText,
  when,
} from './control-text.ts'
import { oneLine, record, shortened, table } from './table.ts'

const now = Date.parse('2026-11-23T18:00:00Z')
const evil = 'a\u001b[2J\u202eb\nc'

const task: Task = {
  ...{ task_id: 'TASK-001', title: 'Check the jail', description: '', role: 'sysadmin', agent_id: null, assigned_to: 'sysadmin' },
  ...{ priority: 'medium', status: 'pending', blocked_reason: null, labels: [], depends_on: [], context: {} },
  ...{ created_at: '2026-11-23T17:58:00.000Z', updated_at: '2026-11-23T17:58:00.000Z', created_by: 'operator anna', version: 1 },
  ...{ attempt: 0, max_attempts: 3, available_at: '2026-11-23T17:58:00.000Z', lease_until: null, run_id: null, parent_task_id: null },
  ...{ budget_tokens: null, tokens_used: 0, cancel_requested: false, result: null, error: null, ended_at: null },
}
const approval: Approval = {
  ...{ approval_id: 'APPR-042', task_id: 'TASK-002', run_id: 'RUN-003', agent_id: 'git-admin', role: 'git-admin' },
  ...{ operation: 'merge PR', reasoning: 'conflict', estimated_tokens: 8500, details: { branch: evil }, digest: 'd'.repeat(64) },
  ...{ state: 'pending', note: null, decided_by: null, decided_at: null, used_at: null },
  ...{ created_at: '2026-11-23T17:50:00.000Z', expires_at: '2026-11-24T17:50:00.000Z' },
}
const agent: Agent = {
  ...{ id: 'sysadmin', role: 'sysadmin', heartbeat_enabled: true, description: '', daily_tokens: null, paused: false, paused_reason: null },
  ...{ wakes: 0, last_seen_at: '2026-11-23T17:59:58.000Z', worker: null, running: [], spent_today: 1200, created_at: task.created_at },
}
const budget: Budget = {
  ...{ daily_tokens: 100_000, allocation: { sysadmin: 10_000 }, timezone: 'Europe/Ljubljana', day: '2026-11-23' },
  ...{ next_day_at: '2026-11-23T23:00:00.000Z', spent_today: 25_000, reserved: 500, remaining: 74_500, hard_limit_exceeded: false },
  ...{
    roles: { sysadmin: { limit: 10_000, spent: 1200, reserved: 0, remaining: 8800 } },
    agents: {},
    forecast_today: 31_000,
    days: [],
    blocked_tasks: 2,
  },
}
const status = {
  url: 'http://127.0.0.1:3100',
  budget,
  agents: [agent],
  approvals: [approval],
  stuck: [],
  queue: { sysadmin: { pending: 3, running: 1 } },
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/
const wide = (lines: readonly string[]) => lines.filter((line) => Bun.stringWidth(line) > 80)

test('whatever a task, an agent or an approval is called, its lines have no control characters, one line each, 80 columns at most', () => {
  const odd = {
    ...task,
    title: `${evil} ${'long '.repeat(60)}`,
    error: evil,
    result: { [evil]: evil },
    created_by: evil,
    description: evil,
  }
  const lines = [
    ...taskLines([odd], now, 80),
    ...agentLines([{ ...agent, paused: true, paused_reason: evil }], now, 80),
    ...statusText({ ...status, stuck: [{ ...odd, status: 'dead' }], approvals: [{ ...approval, operation: evil }] }, now, 80).split('\n'),
    eventLine({
      id: 1,
      at: task.created_at,
      type: 'task.added',
      actor: evil,
      task_id: null,
      run_id: null,
      agent_id: null,
      role: null,
      data: { evil },
    }),
  ]
  expect(lines.filter((line) => raw.test(line))).toEqual([])
  expect(wide(lines.slice(0, -1))).toEqual([])
  expect(lines[1]).toContain('\\u{1b}')
  for (const page of [taskText(odd, now), approvalText(approval, now)])
    expect(page.split('\n').filter((line) => raw.test(line))).toEqual([])
})

test('columns are as wide as their widest cell, numbers stand at the right, wide characters count as two', () => {
  expect(
    table(
      [
        ['a', '1', 'x'],
        ['木木', '1,000', 'y'],
      ],
      { right: [1] },
    ),
  ).toEqual(['a         1  x', '木木  1,000  y'])
  expect(table([['a', 'b'.repeat(100)]], { width: 20 })).toEqual([`a  ${'b'.repeat(16)}…`])
  expect(table([])).toEqual([])
})

const endless = `${evil} ${'木👩‍👩‍👧'.repeat(5_000)}the end`
const odd = { ...task, task_id: 'TASK-12345', title: endless, status: 'awaiting_approval', assigned_to: 'n'.repeat(64) } as const
const oddRun: Run = {
  ...{
    run_id: 'RUN-12345',
    task_id: 'TASK-12345',
    task_title: endless,
    agent_id: 'n'.repeat(64),
    role: 'a',
    attempt: 1,
    state: 'completed',
  },
  ...{ began_at: task.created_at, ended_at: task.created_at, last_beat_at: task.created_at, tokens_used: 1_234_567 },
  ...{ skill: null, error: null, log_bytes: 0, log_truncated: false, has_manifest: false, manifest: null, artifacts: [], changes: null },
}
const oddEvent = {
  ...{ id: 123_456, at: task.created_at, type: 'approval.requested', actor: evil, task_id: 'TASK-12345', run_id: null },
  ...{ agent_id: 'n'.repeat(64), role: null, data: { title: endless } },
}
/** Everything that a person has on the screen, and what of each line must be whole. */
const screens = (width?: number) => ({
  'TASK-12345  awaiting_approval': taskLines([odd], now, width),
  'RUN-12345  completed': runLines([oddRun], now, width),
  'APPR-042  pending  TASK-002': approvalLines([{ ...approval, operation: endless, agent_id: 'n'.repeat(64) }], now, width),
  working: agentLines(
    [{ ...agent, spent_today: 1e9, running: [{ run_id: 'RUN-1', task_id: 'TASK-1', title: endless, lease_until: '' }] }],
    now,
    width,
  ),
  'TASK-12345  ': statusText({ ...status, stuck: [{ ...odd, status: 'dead' }] }, now, width).split('\n'),
  'APPR-042  ': statusText({ ...status, approvals: [{ ...approval, operation: endless }] }, now, width).split('\n'),
  '123456  approval.requested': [eventLine(oddEvent, width)],
})

test.each([40, 80])('on a terminal of %d columns each thing is one line, and its id and state are whole', (width) => {
  for (const [whole, lines] of Object.entries(screens(width))) {
    expect([whole, lines.filter((line) => Bun.stringWidth(line) > width || raw.test(line))]).toEqual([whole, []])
    expect([whole, lines.some((line) => line.includes(whole))]).toEqual([whole, true])
  }
})

test('where stdout is no terminal nothing is cut, and each thing is still one line', () => {
  for (const [whole, lines] of Object.entries(screens())) {
    expect([whole, lines.filter((line) => raw.test(line) || line.includes('\n'))]).toEqual([whole, []])
    const isEvent = whole.startsWith('123456')
    expect([whole, lines.some((line) => line.includes(whole) && line.endsWith('the end') !== isEvent)]).toEqual([whole, true])
  }
})

test('where there is no room the least important columns go first, and names are cut before ids', () => {
  const rows = [['TASK-001', 'running', 'medium', 'sysadmin', '2h', 'Look at the disk']]
  const at = (width: number) => table(rows, { width, keep: [0, 1], drop: [4, 2] })
  expect(at(80)).toEqual(['TASK-001  running  medium  sysadmin  2h  Look at the disk'])
  expect(at(50)).toEqual(['TASK-001  running  medium  sysadmin  Look at the …'])
  expect(at(42)).toEqual(['TASK-001  running  sysadmin  Look at the …'])
  expect(at(30)).toEqual(['TASK-001  running  sys…  Look…'])
})

test('text is cut between characters, never within one', () => {
  expect(shortened('👩‍👩‍👧abc', 3)).toBe('👩‍👩‍👧…')
  expect(shortened('abc', 3)).toBe('abc')
  expect(oneLine(' a\n\tb ')).toBe('a b')
})

test('a record leaves out what is not known, and indents further lines', () => {
  expect(
    record([
      ['a', 'x\ny'],
      ['long', undefined],
      ['b', ''],
    ]),
  ).toBe('a  x\n   y\n')
})

test('lengths of time', () => {
  expect([0, 999, 59_999, 61_000, 3_600_000, 8_100_000, 5 * 86_400_000].map(lengthText)).toEqual([
    '0s',
    '0s',
    '59s',
    '1m',
    '1h',
    '2h 15m',
    '5d',
  ])
  expect([when(null, now), when('2026-11-23T18:02:00Z', now), when('2026-11-23T17:00:00Z', now)]).toEqual(['never', 'in 2m', '1h ago'])
})

test('the status names what needs a person together with the command that deals with it', () => {
  const stuck = [
    { ...task, task_id: 'TASK-004', status: 'blocked', blocked_reason: 'in_doubt' },
    { ...task, task_id: 'TASK-005', status: 'dead', attempt: 3 },
  ] as const
  const text = statusText({ ...status, stuck }, now)
  expect(text).toContain('25,000 of 100,000 tokens spent today, 500 reserved\n               a new day begins in 5h (Europe/Ljubljana)\n')
  expect(text).toContain('control approve APPR-042       git-admin asks: merge PR')
  expect(text).toContain('control task resolve TASK-004  an effect is in doubt: Check the jail')
  expect(text).toContain('control task retry TASK-005    dead after 3 attempts: Check the jail')
  expect(text).toContain('2 tasks wait for more budget')
  expect(text).toContain('sysadmin        3        1        0        0     0       0')
})

test('of many things that need a person the first nine are named and the others counted', () => {
  const stuck = Array.from({ length: 30 }, (_, at) => ({ ...task, task_id: `TASK-${100 + at}`, status: 'dead' as const }))
  const text = statusText({ ...status, approvals: [], budget: { ...budget, blocked_tasks: 0 }, stuck }, now)
  expect(text).toContain('TASK-108')
  expect(text).not.toContain('TASK-109')
  expect(text).toContain('and 21 more')
})

test('the budget is one table, and says how many tasks wait for more', () => {
  expect(budgetText(budget, now)).toEqual([
    '2026-11-23; a new day begins in 5h (Europe/Ljubljana)',
    '                 limit   spent  reserved    left',
    'all            100,000  25,000       500  74,500',
    'role sysadmin   10,000   1,200         0   8,800',
    'forecast for today: 31,000 tokens',
    '2 tasks wait for more budget: braidclaw control task list --status budget_blocked',
  ])
})

test('a page of a task shows that it is held, cancelled or leased', () => {
  expect(taskText({ ...task, status: 'blocked', blocked_reason: 'operator' }, now)).toContain('status    blocked(operator)')
  expect(taskLines([{ ...task, status: 'running', cancel_requested: true }], now)[1]).toContain('cancelling')
  expect(taskText({ ...task, status: 'running', run_id: 'RUN-001', lease_until: '2026-11-23T18:01:00.000Z' }, now)).toContain(
    'RUN-001, lease until Mon 2026-11-23 ',
  )
})

test('a moment is told by the clock of the reader, with its distance', () => {
  expect(moment('2026-11-23T19:21:00.000Z', now, 'Europe/Berlin')).toBe('Mon 2026-11-23 20:21 Europe/Berlin (in 1h 21m)')
})

test('an event names the agent that it is about, unless that one acts; on a terminal it is one line', () => {
  const event = {
    ...{
      id: 7,
      at: task.created_at,
      type: 'agent.added',
      actor: 'operator',
      task_id: null,
      run_id: null,
      agent_id: 'sysadmin',
      role: null,
    },
    data: { title: 'long '.repeat(40) },
  }
  expect(eventLine(event)).toStartWith('2026-11-23T17:58:00.000Z  7  agent.added  sysadmin  operator  {"title"')
  expect(eventLine({ ...event, actor: 'run RUN-001 of sysadmin', data: {} })).toBe(
    '2026-11-23T17:58:00.000Z  7  agent.added  run RUN-001 of sysadmin',
  )
  expect(Bun.stringWidth(eventLine(event, 72))).toBe(72)
})

test('keys and operators have heads, and a short run has tenths of a second', () => {
  const key = { key_id: 'key_1', agent_id: 'sysadmin', created_at: task.created_at, last_used_at: null, revoked_at: null }
  expect(keyLines([key], now)).toEqual(['key    agent     made    used   state', 'key_1  sysadmin  2m ago  never  in force'])
  const operator = { id: 'op_1', name: 'anna', created_at: task.created_at, revoked_at: task.created_at }
  expect(operatorLines([operator], now)).toEqual(['operator  name  made    state', 'op_1      anna  2m ago  revoked 2m ago'])
  const run: Run = {
    ...{ run_id: 'RUN-001', task_id: 'TASK-001', task_title: 'x', agent_id: 'a', role: 'a', attempt: 1, state: 'completed' },
    ...{ began_at: '2026-11-23T17:58:00.000Z', ended_at: '2026-11-23T17:58:00.194Z', last_beat_at: task.created_at, tokens_used: 1 },
    ...{ skill: null, error: null, log_bytes: 0, log_truncated: false, has_manifest: false, manifest: null, artifacts: [], changes: null },
  }
  expect(runLines([run], now)[1]).toContain('  0.2s  ')
})

test('tasks that wait for a role without a worker need a person', () => {
  const quiet = { ...status, approvals: [], budget: { ...budget, blocked_tasks: 0 } }
  const away = { ...agent, last_seen_at: '2026-11-23T17:40:00.000Z' }
  const told = (agents: readonly Agent[], queue = quiet.queue) => statusText({ ...quiet, agents, queue }, now)
  expect(told([agent])).toContain('nothing needs you')
  expect(told([away])).toContain('sysadmin  control worker --agent sysadmin  3 tasks wait: no worker')
  expect(told([{ ...away, id: 'anna' }])).toContain('sysadmin  control worker --agent anna -r sysadmin  3 tasks wait')
  expect(told([])).toContain('sysadmin  control agent add  3 tasks wait for a role without an agent')
  expect(told([{ ...away, paused: true }])).toContain('nothing needs you')
  const spent = { limit: 10_000, spent: 10_000, reserved: 0, remaining: 0 }
  const poor = { ...quiet, agents: [agent], budget: { ...quiet.budget, roles: { sysadmin: spent } } }
  expect(statusText(poor, now)).toContain('sysadmin  control budget set --role sysadmin=…  3 tasks wait: its budget')
  expect(statusText({ ...poor, budget: { ...poor.budget, remaining: 0 } }, now)).toContain(
    'control budget set --daily …  3 tasks wait: the',
  )
  expect(told([away], { sysadmin: { pending: 0, running: 0 } })).toContain('nothing needs you')
})
