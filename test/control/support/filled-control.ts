/** Fills a control plane with something of everything that its pages show: for their tests and their pictures. */

import type { ControlUnderTest } from './control-server.ts'

export type FilledControl = {
  /** The run that works now, with a log, an artifact and a manifest. */
  readonly runId: string
  readonly taskId: string
  readonly waitingTask: string
  readonly deadTask: string
  readonly doubtfulTask: string
}

const roles = ['orchestrator', 'sysadmin', 'db-admin', 'git-admin'] as const

const titles = [
  'Check if db jail is running',
  'Vacuum the journal of clawdie-db',
  'Rotate the logs of the build host',
  'Snapshot the data set zroot/jails before the upgrade',
  'Compare the packet filter rules with the ones in git',
  'Renew the certificate of the mail host',
]

/** `hostile`: stands in every field that agents and operators fill. */
export async function fillControl(at: ControlUnderTest, hostile = ''): Promise<FilledControl> {
  const operator = at.client()
  const keys = Object.fromEntries(await Promise.all(roles.map(async (role) => [role, await at.addAgent(role)] as const)))
  await operator.budget.set({
    daily_tokens: 100_000,
    allocation: { orchestrator: 80_000, sysadmin: 10_000, 'db-admin': 5_000 },
    timezone: 'Europe/Berlin',
  })
  const extra = hostile === '' ? {} : { note: hostile }
  const worker = { host: 'build-1', pid: 4711, runner: 'pi', ...extra }
  for (const role of roles) await at.client(keys[role]).fleet.report(role, worker, { count: 1_204, head: '9f'.repeat(32), ...extra })

  const running = await claimed(at, keys, 'sysadmin', `Check if db jail is running${hostile}`)
  const runner = at.client(running.run_token)
  await runner.runs.appendLog(running.run_id, 0, `jls -v\n JID  IP Address      Hostname\n   3  10.17.0.12      clawdie-db ✓\n${hostile}\n`)
  const body = Buffer.from(`# Report\n${hostile}`)
  const digest = new Bun.CryptoHasher('sha256').update(body).digest('hex')
  await runner.runs.putArtifact(running.run_id, { name: 'report.md', digest, body: body.toString('base64') })
  await runner.runs.deliver(running.run_id, {
    manifest: { asked: `Check${hostile}`, versions: { braidclaw: '1.0' } },
    changes: 'waiting',
    skill: 'jail-status',
  })
  await runner.runs.addSession('sysadmin', {
    ...{
      timestamp: new Date().toISOString().replace(/\.\d+/, ''),
      task: `Check${hostile}`,
      skill: 'jail-status',
      outcome: `running${hostile}`,
      tokens_used: 420,
    },
  })

  const waiting = await claimed(at, keys, 'git-admin', 'Merge PR #42 with conflict resolution')
  await at
    .client(waiting.run_token)
    .activity({
      event_type: 'approval_request',
      agent_id: 'git-admin',
      operation: `Merge PR #42 with conflict resolution${hostile}`,
      reasoning: `Conflict detected in src/index.ts${hostile}`,
      estimated_tokens: 8_500,
      details: { branch: 'main', files: ['src/index.ts'], ...extra },
    })

  const effect = { key: 'mail-week-47', description: `Mail to ops${hostile}` }
  const doubtful = await claimed(at, keys, 'orchestrator', 'Send the weekly report')
  await at.client(doubtful.run_token).tasks.beginEffect(doubtful.task.task_id, effect)
  await at.client(doubtful.run_token).tasks.release(doubtful.task.task_id, { outcome: 'now' })
  const again = await at.client(keys.orchestrator).tasks.claim({ role: 'orchestrator', agent_id: 'orchestrator' })
  if (again) await at.client(again.run_token).tasks.beginEffect(again.task.task_id, effect)

  const dead = await claimed(at, keys, 'db-admin', 'Vacuum the journal of clawdie-db', 1)
  await at
    .client(dead.run_token)
    .tasks.release(dead.task.task_id, { outcome: 'retry', error: `Vacuum failed: database locked${hostile}`, tokens_used: 1_200 })

  for (let at = 0; at < 5; at += 1) await done(titles[at] ?? '', at)
  await operator.tasks.createMany(
    titles.map((title, at) => ({
      ...{
        title: `${title}${hostile}`,
        role: roles[at % 4] ?? 'sysadmin',
        description: `Look first.\n${hostile}`,
        labels: at % 2 === 0 ? ['nightly'] : [],
      },
      priority: (['urgent', 'high', 'medium', 'low'] as const)[at % 4] ?? 'medium',
      context: extra,
    })),
  )
  await operator.schedules.add({
    name: 'nightly-vacuum',
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
    task: { title: `Vacuum${hostile}`, role: 'db-admin' },
  })
  await operator.fleet.pause('db-admin', `waits for the new disk${hostile}`)
  return {
    ...{ runId: running.run_id, taskId: running.task.task_id, waitingTask: waiting.task.task_id },
    ...{ deadTask: dead.task.task_id, doubtfulTask: doubtful.task.task_id },
  }

  async function done(title: string, index: number): Promise<void> {
    const { run_token, task } = await claimed(at, keys, 'orchestrator', title)
    await at
      .client(run_token)
      .activity({
        ...{ event_type: 'task_completed', task_id: task.task_id, agent_id: 'orchestrator', skill_executed: 'jail-status' },
        result: { status: 'success', output: `Done.${hostile}`, tokens_used: 2_000 + index * 900 },
      })
  }
}

type Keys = { readonly [role: string]: string }

/** Makes a task and claims it at once; it is the most urgent one of its role. */
export async function claimed(at: ControlUnderTest, keys: Keys, role: string, title: string, max_attempts = 3) {
  const task = await at.client().tasks.create({ title, role, priority: 'urgent', max_attempts })
  const claim = await at.client(keys[role]).tasks.claim({ role, agent_id: role })
  if (claim?.task.task_id !== task.task_id) throw new Error(`${task.task_id} was not claimed, but ${claim?.task.task_id}`)
  return claim
}
