/**
 * Implements `control agent list | add | edit | remove | pause | resume | wake`, `control key new | list | rotate | revoke` and
 * `control operator list | new | revoke`: the agents, and the secrets of agents and operators.
 */

import type { Agent, NewAgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { Arguments, Example, Flags } from '../../../args/command.ts'
import { commandError, usageError } from '../../../exit.ts'
import { printList, printOne } from '../../../print-list.ts'
import { nameOf, tokensOf } from '../connect/argument-values.ts'
import { controlCommand, controlFlags, present, proposeControlAgents, proposeRoles } from '../connect/control-flags.ts'
import { keyFlags, showKey, showSecret, terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { agentLines, agentState, keyLines, operatorLines } from '../text/control-text.ts'

export const list = controlCommand({
  examples: [
    ['', 'all agents: what each works on, when it was last seen'],
    ['--json', 'for scripts'],
  ],
  async run({ context, control, json }) {
    const agents = await control.fleet.list()
    const none = 'no agents yet; add one: braidclaw control agent add sysadmin --role sysadmin'
    printList(context, { items: agents, json, lines: agentLines(agents, Date.now(), terminalWidth()), none })
  },
})

export const agentArgs = { agent: { type: 'text', about: 'Its name', complete: proposeControlAgents } } as const satisfies Arguments

export const add = controlCommand({
  flags: {
    role: {
      type: 'text',
      short: 'r',
      about: 'What it does; it may claim the tasks of this role (default: its name)',
      complete: proposeRoles,
    },
    description: { type: 'text', short: 'd', about: 'A note about it' },
    daily: { type: 'text', about: 'The tokens that it may spend a day: 5000, 100k' },
    noHeartbeat: { type: 'boolean', about: 'Switch its heartbeat off, which it reads in the state' },
    key: { type: 'boolean', about: 'Also make its key, which is shown once' },
    ...keyFlags,
    ...controlFlags,
  },
  args: { agent: { type: 'text', about: 'Its name: letters, digits, ".", "_" and "-"' } },
  examples: [
    ['sysadmin', 'of the role sysadmin'],
    ['db-admin-2 --role db-admin --daily 50k --key --to db-admin-2.key', 'with a key, into a file that only you can read'],
  ],
  async run({ context, control, json }, given, { agent: typed }) {
    const id = nameOf('agent', typed)
    const { role = id, description = '', daily, noHeartbeat = false, key = false, to } = given
    if (to !== undefined && !key) throw usageError('--to is where the key goes; add --key to make one')
    const limit = daily === undefined ? null : tokensOf('--daily', daily)
    const agent = await control.fleet.add({ id, role, description, daily_tokens: limit, heartbeat_enabled: !noHeartbeat })
    if (!key) return printOne(context, { json, value: agent, text: `added ${id} (${role}); its key: braidclaw control key new ${id}\n` })
    showKey(context, { key: await control.fleet.newKey(id), json, to })
    const who = `--agent ${id}${role === id ? '' : ` --role ${role}`}`
    if (!json)
      context.process.stderr.write(`added ${id} (${role}); its worker: braidclaw control worker ${who} --key-file ${to ?? 'FILE'}\n`)
  },
})

export const edit = controlCommand({
  flags: {
    role: { type: 'text', short: 'r', about: 'Its role from now on', complete: proposeRoles },
    description: { type: 'text', short: 'd', about: 'A note about it' },
    daily: { type: 'text', about: 'The tokens that it may spend a day, or none' },
    heartbeat: { type: 'choice', values: ['on', 'off'], about: 'Whether its heartbeat is on' },
    ...controlFlags,
  },
  args: agentArgs,
  examples: [['sysadmin --daily 20k --heartbeat on', 'fields that are not named keep their value']],
  async run({ context, control, json }, given, { agent: typed }) {
    const id = nameOf('agent', typed)
    const { role, description, daily, heartbeat } = given
    const patch = present({
      ...{ role, description },
      daily_tokens: daily === undefined ? undefined : tokensOf('--daily', daily),
      heartbeat_enabled: heartbeat === undefined ? undefined : heartbeat === 'on',
    })
    if (Object.keys(patch).length === 0) throw usageError('nothing to change; name a field, such as --daily 20k')
    printOne(context, { json, ...shown(await control.fleet.edit(id, patch)) })
  },
})

export const pause = controlCommand({
  flags: { reason: { type: 'text', about: 'Why; its worker and the dashboard show it' }, ...controlFlags },
  args: agentArgs,
  examples: [['sysadmin --reason "maintenance until 14:00"', 'it claims nothing until it is resumed; running tasks continue']],
  async run({ context, control, json }, given, { agent: typed }) {
    const id = nameOf('agent', typed)
    const agent = await control.fleet.pause(id, given.reason ?? '')
    const advice = `; to resume it: braidclaw control agent resume ${id}`
    printOne(context, { json, ...shown(agent, advice) })
  },
})

function changing(example: Example, change: (control: Control, id: string) => Promise<Shown>) {
  return controlCommand({
    flags: controlFlags,
    args: agentArgs,
    examples: [example],
    async run({ context, control, json }, _, { agent: typed }) {
      const id = nameOf('agent', typed)
      printOne(context, { json, ...(await change(control, id)) })
    },
  })
}

export const resume = changing(['sysadmin', 'it claims tasks again'], async (control, id) => shown(await control.fleet.resume(id)))
export const wake = changing(['sysadmin', 'a worker that waits looks for tasks at once'], async (control, id) =>
  shown(await control.fleet.wake(id)),
)
export const remove = changing(
  ['db-admin-2', 'its keys end, its leases are released; what it did stays in the records'],
  async (control, id) => {
    await control.fleet.remove(id)
    return { value: { id, removed: true }, text: `removed ${id}\n` }
  },
)

type Shown = { readonly value: unknown; readonly text: string }

function shown(agent: Agent, advice = ''): Shown {
  const { id, role, paused_reason: reason } = agent
  return { value: agent, text: `${id} (${role})  ${agentState(agent)}${agent.paused && reason ? `: ${reason}` : ''}${advice}\n` }
}

const makeFlags = { ...keyFlags, ...controlFlags } as const satisfies Flags

function making(examples: readonly Example[], make: (control: Control, id: string) => Promise<NewAgentKey>) {
  return controlCommand({
    flags: makeFlags,
    args: agentArgs,
    examples,
    async run({ context, control, json }, given, { agent }) {
      showKey(context, { key: await make(control, nameOf('agent', agent)), json, to: given.to })
    },
  })
}

export const create = making(
  [
    ['sysadmin', 'shown this once; the control plane keeps its SHA-256'],
    ['sysadmin --to sysadmin.key', 'into a file that only you can read'],
  ],
  (control, id) => control.fleet.newKey(id),
)

export const rotate = making(
  [['sysadmin --to sysadmin.key', 'a new key; all others of this agent end at once, running tasks continue']],
  (control, id) => control.fleet.rotateKey(id),
)

export const listKeys = controlCommand({
  args: agentArgs,
  examples: [['sysadmin', 'when each was made and last used; the keys themselves are not stored']],
  async run({ context, control, json }, _, { agent }) {
    const keys = await control.fleet.keys(nameOf('agent', agent))
    const none = `${agent} has no key; make one: braidclaw control key new ${agent}`
    printList(context, { items: keys, json, lines: keyLines(keys, Date.now(), terminalWidth()), none })
  },
})

export const revoke = controlCommand({
  args: { ...agentArgs, key: { type: 'text', optional: true, about: 'Which one; may be left out where there is only one' } },
  examples: [['sysadmin', 'its next request is refused, and its leases are released']],
  async run({ context, control, json }, _, { agent: typed, key }) {
    const agent = nameOf('agent', typed)
    const revoked = await control.fleet.revokeKey(agent, key ?? (await onlyKey(control, agent)))
    printOne(context, { json, value: revoked, text: `revoked: key ${revoked.key_id} of ${agent}\n` })
  },
})

async function onlyKey(control: Control, agent: string): Promise<string> {
  const keys = (await control.fleet.keys(agent)).filter(({ revoked_at: revoked }) => revoked === null)
  const [first, second] = keys
  if (first === undefined) throw commandError(`${agent} has no key in force`)
  if (second === undefined) return first.key_id
  throw usageError(`${agent} has ${keys.length} keys in force; name one: ${keys.map((each) => each.key_id).join(', ')}`)
}

export const createOperator = controlCommand({
  flags: makeFlags,
  args: { name: { type: 'text', about: 'The name of its holder, which records show' } },
  examples: [
    ['anna', 'shown only once; its holder may do everything'],
    ['ci --to ci.token', 'into a file that only you can read'],
  ],
  async run({ context, control, json }, given, { name }) {
    const operator = await control.fleet.newOperator(nameOf('operator', name))
    showSecret(context, { secret: operator.token, name: `operator token ${operator.id} of ${name}`, value: operator, json, to: given.to })
  },
})

export const listOperators = controlCommand({
  examples: [['', 'names and ids; the tokens themselves are not stored']],
  async run({ context, control, json }) {
    const operators = await control.fleet.operators()
    printList(context, { items: operators, json, lines: operatorLines(operators, Date.now(), terminalWidth()), none: 'no operator tokens' })
  },
})

export const revokeOperator = controlCommand({
  args: { id: { type: 'text', about: 'Its id, as "control operator list" shows it' } },
  examples: [['op-2', 'its next request is refused']],
  async run({ context, control, json }, _, { id }) {
    const revoked = await control.fleet.revokeOperator(nameOf('operator', id))
    printOne(context, { json, value: revoked, text: `revoked: operator token ${revoked.id} of ${revoked.name}\n` })
  },
})
