/** The seed's own examples, byte for byte. */

import { expect, test } from 'bun:test'
import { taskDraft } from '../../../src/control/contract/task-shapes.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, moneyPlane, seedCaller } from '../support/money-plane.ts'
import { agentCaller, anna, draft } from '../support/task-plane.ts'

const stateExample = `{
  "agents": [
    { "id": "clawdie", "role": "orchestrator", "heartbeat_enabled": false },
    {
      "id": "sysadmin",
      "role": "sysadmin",
      "heartbeat_enabled": true
    },
    {
      "id": "db-admin",
      "role": "db-admin",
      "heartbeat_enabled": false
    },
    {
      "id": "git-admin",
      "role": "git-admin",
      "heartbeat_enabled": false
    }
  ],
  "budget": {
    "daily_tokens": 100000,
    "spent_today": 25000,
    "remaining": 75000,
    "hard_limit_exceeded": false,
    "allocation": {
      "orchestrator": 80000,
      "sysadmin": 10000,
      "db-admin": 5000,
      "git-admin": 5000
    }
  }
}`

const tasksExample = `{
  "tasks": [
    {
      "task_id": "TASK-001",
      "title": "Check if db jail is running",
      "description": "Verify clawdie-db is up and healthy",
      "assigned_to": "sysadmin",
      "priority": "medium",
      "status": "pending",
      "created_at": "2026-04-07T10:30:00Z",
      "context": { "jail_name": "clawdie-db" }
    }
  ]
}`

const approvalsExample = `{
  "pending": [
    {
      "approval_id": "APPR-042",
      "task_id": "TASK-002",
      "operation": "merge PR with conflict resolution",
      "estimated_tokens": 8500,
      "operator_approved": false
    }
  ],
  "approved": [
    {
      "approval_id": "APPR-041",
      "operation": "backup database",
      "operator_approved": true,
      "approved_at": "2026-04-07T10:45:00Z"
    }
  ]
}`

/** The bytes as a server sends them: without the white space of the document. */
const compact = (example: string) => JSON.stringify(JSON.parse(example))

forEachEngine('the answers of the seed', (open) => {
  test('state has the bytes of the example', async () => {
    const plane = await moneyPlane(await open())
    const roles = ['orchestrator', 'sysadmin', 'db-admin', 'git-admin']
    const ids = ['clawdie', ...roles.slice(1)]
    for (const [at, id] of ids.entries()) await plane.addAgent(id, { role: roles[at] ?? '', heartbeat_enabled: id === 'sysadmin' })
    const allocation = { orchestrator: 80_000, sysadmin: 10_000, 'db-admin': 5_000, 'git-admin': 5_000 }
    await plane.budget.set(anna, { daily_tokens: 100_000, allocation })
    await plane.activity(seedCaller, { event_type: 'error', agent_id: 'clawdie', error_message: 'spent', tokens_used: 25_000 })
    expect(JSON.stringify(await plane.seed.state(seedCaller))).toBe(compact(stateExample))
  })

  test('state shows reserved tokens as gone, a paused agent as inactive, and a budget without a limit as the highest limit', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const run = await plane.startRun()
    await plane.budget.reserve(run.caller, { tokens: 300, purpose: '' })
    await plane.fleet.pause(anna, 'a1', 'holiday')
    const state = await plane.seed.state(seedCaller)
    expect(state.agents).toEqual([{ id: 'a1', role: 'sysadmin', heartbeat_enabled: false }])
    expect(state.budget).toEqual({
      daily_tokens: 1_000_000_000_000,
      spent_today: 0,
      remaining: 999_999_999_700,
      hard_limit_exceeded: false,
      allocation: {},
    })
  })

  test('tasks has the bytes of the example, and of other roles nothing', async () => {
    const plane = await moneyPlane(await open())
    const title = 'Check if db jail is running'
    const description = 'Verify clawdie-db is up and healthy'
    await plane.tasks.create(anna, draft({ title, description, context: { jail_name: 'clawdie-db' } }))
    await plane.tasks.create(anna, draft({ role: 'db-admin' }))
    expect(JSON.stringify(await plane.seed.tasks(seedCaller, 'sysadmin'))).toBe(compact(tasksExample))
    expect((await plane.seed.tasks(seedCaller)).tasks.map((task) => task.task_id)).toEqual(['TASK-001', 'TASK-002'])
  })

  test('tasks lists what may be done now: nothing delayed, nothing that runs, and a run sees its own task', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const later = new Date(plane.clock.at + 60_000).toISOString()
    await plane.tasks.create(anna, taskDraft.parse({ title: 'later', role: 'sysadmin', available_at: later }))
    const run = await plane.startRun('a1', { title: 'mine' })
    await plane.tasks.create(anna, draft({ title: 'for b1', agent_id: 'b1' }))
    const titles = async (caller: Parameters<typeof plane.seed.tasks>[0]) =>
      (await plane.seed.tasks(caller, 'sysadmin')).tasks.map((task) => task.title)
    expect(await titles(seedCaller)).toEqual(['for b1'])
    expect(await titles(agentCaller('a1'))).toEqual([])
    expect(await titles(run.caller)).toEqual(['mine'])
    expect(await codeOf(plane.seed.tasks(agentCaller('a1'), 'db-admin'))).toBe('forbidden')
  })

  test('approvals has the bytes of the example', async () => {
    const store = await open()
    const plane = await moneyPlane(store)
    await plane.addAgent('git-admin', { role: 'git-admin' })
    await store.write(function* () {
      yield ["INSERT INTO sequences (name, value) VALUES ('approvals', 40)"]
    })
    const ask = { event_type: 'approval_request', agent_id: 'git-admin' }
    await plane.activity(seedCaller, { ...ask, operation: 'backup database' })
    plane.clock.at = Date.parse('2026-04-07T10:45:00Z')
    await plane.approvals.decide(anna, 'APPR-041', { decision: 'approve', note: '' })
    await plane.tasks.create(anna, draft())
    const run = await plane.startRun('git-admin', { role: 'git-admin' })
    await plane.activity(run.caller, { ...ask, operation: 'merge PR with conflict resolution', estimated_tokens: 8500 })
    expect(JSON.stringify(await plane.seed.approvals(seedCaller, 'git-admin'))).toBe(compact(approvalsExample))
    expect(await plane.seed.approvals(seedCaller, 'sysadmin')).toEqual({ pending: [], approved: [] })
  })

  test('an agent reads its own approvals only', async () => {
    const plane = await moneyPlane(await open())
    await plane.activity(seedCaller, { event_type: 'approval_request', agent_id: 'a1', operation: 'one' })
    await plane.activity(seedCaller, { event_type: 'approval_request', agent_id: 'b1', operation: 'two' })
    expect(await codeOf(plane.seed.approvals(agentCaller('a1'), 'b1'))).toBe('forbidden')
    expect((await plane.seed.approvals(agentCaller('a1'))).pending.map((one) => one.operation)).toEqual(['one'])
    expect((await plane.seed.approvals(seedCaller)).pending).toHaveLength(2)
  })
})
