/** A fleet's day, by commands alone: three roles with workers of their own, twenty tasks, one approval, one stop by a budget. */

import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { type OwnControl, ownControl } from '../support/own-control.ts'

/** What a runner is: the task on stdin, JSON lines on stdout; its credential is in the environment. */
const script = `#!/bin/sh
task=$(cat)
ask() { curl -sS -H "authorization: Bearer $CONTROLPLANE_API_KEY" -H 'content-type: application/json' "$@"; }
api="$CONTROLPLANE_API_URL/api/controlplane"
end() { printf '{"type":"usage","tokens":%d}\\n{"type":"result","ok":true,"output":"%s","skill":"script"}\\n' "$1" "$2"; exit 0; }
case $task in
  *'"title":"Drop '*)
    case $(ask "$api/approvals?agent_id=$CONTROLPLANE_AGENT_ID") in
      *'"operator_approved":true'*) end 300 'dropped, as it was approved' ;;
    esac
    ask -d "{\\"event_type\\":\\"approval_request\\",\\"agent_id\\":\\"$CONTROLPLANE_AGENT_ID\\",\\"operation\\":\\"drop table sessions\\",\\"estimated_tokens\\":300}" "$api/activity"
    ;;
  *'"title":"Summarise '*)
    for tokens in 3000 1000; do
      held=$(ask -d "{\\"tokens\\":$tokens}" "$api/budget/reserve" | sed -n 's/.*"reservation_id":"\\([^"]*\\)".*/\\1/p')
      [ -n "$held" ] || exit 0
      ask -d "{\\"reservation_id\\":\\"$held\\",\\"tokens\\":$tokens}" "$api/budget/settle" > /dev/null
    done
    end 4000 'summarised'
    ;;
  *) end 100 'looked' ;;
esac
`

const roles = ['sysadmin', 'db-admin', 'writer'] as const

async function worker(control: OwnControl, role: string, runner: string): Promise<void> {
  const { at } = control
  const key = join(at.dir, `${role}.key`)
  await control.out(['agent', 'add', role, '--key', '--to', key])
  const folder = join(at.home, role)
  mkdirSync(folder)
  await control.start(['worker', '--agent', role, '--key-file', key, '--runner', 'command', '-C', folder, '--', runner]).says('ready: ')
}

/** Where the day does not end while the test runs. */
function zoneAtNoon(): string {
  const hours = 12 - new Date().getUTCHours()
  return `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`
}

test.if(needs('curl'))(
  'three roles, twenty tasks, one approval, one stop by a budget',
  async () => {
    await using control = await ownControl()
    const { at, json, out } = control
    const runner = join(at.dir, 'runner.sh')
    await Bun.write(runner, script)
    chmodSync(runner, 0o755)
    await out(['budget', 'set', '--daily', '100k', '--role', 'writer=3k', '--zone', zoneAtNoon()])

    // In the morning the operator writes down what is to be done.
    const first = await out(['task', 'add', 'Check the jails', '--role', 'sysadmin', '--priority', 'urgent'])
    for (let number = 2; number <= 9; number++)
      await out(['task', 'add', `Check disk ${number}`, '--role', 'sysadmin', '--idempotency-key', `disk-${number}`])
    for (let number = 10; number <= 17; number++)
      await out(['task', 'add', `Check table ${number}`, '--role', 'db-admin', '--label', 'nightly'])
    const drop = await out(['task', 'add', 'Drop the table sessions', '--role', 'db-admin', '--after', first])
    const summary = await out(['task', 'add', 'Summarise the log', '--role', 'writer', '--description', '-'], { stdin: 'one\ntwo\n' })
    await out(['task', 'add', 'Check the spelling', '--role', 'writer', '--after', summary, '--budget', '5k'])
    expect(await out(['task', 'add', 'Check disk 2', '--role', 'sysadmin', '--idempotency-key', 'disk-2'])).toBe('TASK-002')
    expect((await json(['task', 'list'])).length).toBe(20)

    await Promise.all(roles.map((role) => worker(control, role, runner)))

    // One needs a yes, one more budget; everything else is done.
    const status = await until(async () => {
      const found = await json(['status'])
      return found.approvals.length === 1 && found.budget.blocked_tasks === 1 ? found : undefined
    }, 120_000)
    expect(status.approvals[0]).toMatchObject({ task_id: drop, agent_id: 'db-admin', operation: 'drop table sessions' })
    const shown = await out(['status'])
    expect(shown).toContain(`control approve ${status.approvals[0].approval_id}`)
    expect(shown).toContain('1 task waits for more budget')
    expect((await json(['task', 'show', summary])).status).toBe('budget_blocked')

    await out(['task', 'approve', drop, '--note', 'before six'])
    const again = await control.run(['deny', status.approvals[0].approval_id])
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('approved')])
    await out(['budget', 'set', '--role', 'writer=10k'])

    const tasks = await until(async () => {
      const found: { status: string }[] = await json(['task', 'list'])
      return found.every((task) => task.status === 'completed') ? found : undefined
    }, 120_000)
    expect(tasks.length).toBe(20)

    // In the evening: what it cost, who did it, what happened.
    const budget = await json(['budget'])
    expect(budget.roles.writer).toMatchObject({ limit: 10_000, spent: 7_100, reserved: 0 })
    expect(budget.roles['db-admin'].spent).toBe(8 * 100 + 300)
    expect(budget.spent_today).toBe(900 + 1_100 + 7_100)
    const runs = await json(['run', 'list', '--task', drop])
    expect(runs.map((run: { state: string }) => run.state)).toEqual(['completed', 'waiting'])
    expect(await out(['run', 'log', runs[0].run_id])).toContain('dropped, as it was approved')
    const events = (await out(['task', 'log', drop])).split('\n').map((line) => line.split('  ')[2])
    expect(events).toContain('approval.approved')
    const lines = (await out(['export'])).split('\n').map((line) => JSON.parse(line))
    expect(lines.filter(({ kind }) => kind === 'task').length).toBe(20)
    expect(lines.filter(({ kind }) => kind === 'run').length).toBe(22)
    const counted = lines.flatMap(({ kind, tokens }) => (kind === 'ledger' ? [tokens] : []))
    expect(counted.reduce((sum, tokens) => sum + tokens, 0)).toBe(budget.spent_today)
  },
  180_000,
)
