/** Simulated workers in a process of their own: `bun chaos-worker.ts CONFIG`. They crash, hang, lie down and are killed at any point. */

import { dice } from '../../support/dice.ts'
import { type Answered, askOf, untilAnswered } from './asking.ts'
import { openWorld } from './world.ts'

export type WorkerConfig = {
  readonly name: string
  readonly seed: number
  readonly folder: string
  readonly urls: readonly string[]
  readonly leaseMs: number
  readonly agents: readonly { readonly id: string; readonly role: string; readonly key: string }[]
}

type Held = {
  readonly task: string
  readonly run: string
  readonly token: string
  readonly until: () => number
  readonly extend: () => void
}

const config: WorkerConfig = JSON.parse(process.argv[2] ?? '{}')
const roll = dice(config.seed)
const world = openWorld(config.folder, config.name)
const ask = askOf(config.urls, roll)
const chance = (percent: number) => roll(1_000) < percent * 10
const refused = (answer: Answered) => answer.status === 401 || answer.status === 403 || answer.status === 409

/** Holds what each run has told the world, which it reports at its end. */
const spentBy = new Map<string, number>()
const begun = { runs: 0 }

await Promise.all(config.agents.map(loop))

async function loop(agent: WorkerConfig['agents'][number]): Promise<never> {
  for (;;) {
    const before = performance.now()
    const { status, body } = await ask(agent.key, 'tasks/claim', {
      body: { role: agent.role, agent_id: agent.id, wait_ms: 400, lease_s: config.leaseMs / 1_000 },
    })
    if (status === 200) await perform(agent, body, before).catch(() => undefined)
    else await Bun.sleep(status === 204 ? 1 : 50)
  }
}

async function perform(agent: WorkerConfig['agents'][number], claim: Answered['body'], claimedAt: number): Promise<void> {
  const lease = { until: claimedAt + config.leaseMs }
  const held: Held = {
    task: claim.task.task_id,
    run: claim.run_id,
    token: claim.run_token,
    until: () => lease.until,
    extend: () => {
      lease.until = performance.now() + config.leaseMs
    },
  }
  begun.runs += 1
  // The first process of each worker does both once, so that no run of the test is without them.
  const isFirst = (run: number) => config.name.endsWith('-0') && begun.runs === run
  if (isFirst(1) || chance(3)) await overstep(agent, held)
  if (isFirst(2) || chance(2)) await sleepLate(held)
  crashSometimes()
  if (!(await effect(held, 'mail')) || !(await spend(held))) return
  crashSometimes()
  if (claim.task.context.asks === true && !(await permitted(agent, held, claim.task.context.approvals))) return
  await beat(held)
  if (chance(40) && !(await effect(held, 'deploy'))) return
  crashSometimes()
  await finish(agent, held)
}

function crashSometimes(): void {
  if (!chance(0.4)) return
  world.happen({ kind: 'count', what: 'crash' })
  process.exit(9)
}

async function beat(held: Held): Promise<void> {
  const before = performance.now()
  const { status } = await ask(held.token, `tasks/${held.task}/beat`, { body: {} })
  if (status === 200) held.extend()
  if (status === 200 && before > held.until() + 5_000)
    world.happen({ kind: 'wrong', what: `a beat of ${held.run} long after its lease was accepted` })
}

/** Writes after the lease is over: nothing of it may be accepted. */
async function sleepLate(held: Held): Promise<void> {
  await Bun.sleep(config.leaseMs * 1.6)
  const late = [
    ask(held.token, `tasks/${held.task}/beat`, { body: {} }),
    ask(held.token, `tasks/${held.task}/effects`, { body: { key: 'late' } }),
    ask(held.token, 'budget/reserve', { body: { tokens: 5 } }),
    ask(held.token, `tasks/${held.task}/release`, { body: { outcome: 'failed', error: 'late' } }),
    ask(held.token, 'activity', { body: completion('late', held, 1) }),
  ]
  for (const answer of await Promise.all(late)) {
    if (answer.status === 0 || answer.status === 503) continue
    world.happen(
      refused(answer)
        ? { kind: 'count', what: 'late write refused' }
        : { kind: 'wrong', what: `late write of ${held.run}: ${answer.status}` },
    )
  }
}

/** @returns whether the run may go on */
async function effect(held: Held, key: string): Promise<boolean> {
  const begun = await ask(held.token, `tasks/${held.task}/effects`, { body: { key } })
  if (begun.status !== 200 && begun.status !== 201) return false
  if (begun.body.state === 'done') return true
  if (begun.body.state !== 'new' || performance.now() > held.until()) return false
  crashSometimes()
  world.happen({ kind: 'effect', task: held.task, key, run: held.run })
  crashSometimes()
  const ended = await untilAnswered(() => ask(held.token, `tasks/${held.task}/effects/${key}/done`, { body: { result: held.run } }))
  return ended.status < 300
}

async function spend(held: Held): Promise<boolean> {
  const reserved = await ask(held.token, 'budget/reserve', { body: { tokens: 10 + roll(30) } })
  if (reserved.status !== 200) {
    // Only a run that is still allowed to: a task without budget waits already.
    await ask(held.token, `tasks/${held.task}/release`, { body: { outcome: 'now' } })
    return false
  }
  const tokens = 1 + roll(reserved.body.tokens)
  crashSometimes()
  world.happen({ kind: 'spent', task: held.task, run: held.run, tokens })
  spentBy.set(held.run, (spentBy.get(held.run) ?? 0) + tokens)
  crashSometimes()
  const { reservation_id } = reserved.body
  await untilAnswered(() => ask(held.token, 'budget/settle', { body: { reservation_id, tokens } }))
  return true
}

/** Asks first, which ends the run; a later run, of whichever agent, finds the answer in the context of the task and uses it once. */
async function permitted(agent: WorkerConfig['agents'][number], held: Held, answers: Record<string, { state: string }> = {}) {
  const approved = Object.keys(answers).filter((id) => answers[id]?.state === 'approved')
  for (const id of approved) {
    const use = await ask(held.token, `approvals/${id}/use`, { body: {} })
    if (use.status !== 200) continue
    world.happen({ kind: 'used', approval: id, run: held.run })
    return true
  }
  const post = {
    event_type: 'approval_request',
    agent_id: agent.id,
    operation: `deploy ${held.task}`,
    reasoning: 'chaos',
    estimated_tokens: 1,
  }
  await untilAnswered(() => ask(held.token, 'activity', { body: post }))
  return false
}

async function finish(agent: WorkerConfig['agents'][number], held: Held): Promise<void> {
  if (chance(10)) await ask(held.token, `tasks/${held.task}/release`, { body: { outcome: chance(50) ? 'retry' : 'now', error: 'chaos' } })
  else await untilAnswered(() => ask(held.token, 'activity', { body: completion('done', held, spentBy.get(held.run) ?? 0, agent.id) }))
  spentBy.delete(held.run)
}

function completion(output: string, held: Held, tokens: number, agent = config.agents[0]?.id) {
  return {
    event_type: 'task_completed',
    task_id: held.task,
    agent_id: agent,
    skill_executed: 'chaos',
    result: { status: 'success', output, tokens_used: tokens },
  }
}

/** I12: no route of operators for an agent's key or a run's token. */
async function overstep(agent: WorkerConfig['agents'][number], held: Held): Promise<void> {
  const routes: readonly (readonly [string, { method?: string; body?: unknown }])[] = [
    [`tasks/${held.task}/cancel`, { body: {} }],
    [`tasks/${held.task}`, { method: 'PATCH', body: { title: 'mine' } }],
    ['budget', { method: 'PUT', body: { daily_tokens: null } }],
    ['agents', { body: { id: 'mine', role: agent.role } }],
    [`agents/${agent.id}/keys`, { body: {} }],
    ['approvals/APPR-001/decision', { body: { decision: 'approve' } }],
    ['operators', { body: { name: 'mine' } }],
    ['operators', {}],
  ]
  for (const token of [agent.key, held.token]) {
    const [path, request] = routes[roll(routes.length)] ?? ['operators', {}]
    const answer = await ask(token, path, request)
    if (answer.status === 0 || answer.status === 503) continue
    if (!refused(answer)) world.happen({ kind: 'wrong', what: `${path} answered ${answer.status} to ${token.slice(0, 4)}` })
    else world.happen({ kind: 'count', what: 'operator route refused' })
  }
}
