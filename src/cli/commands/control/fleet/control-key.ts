/** Implements `control key new | list | rotate | revoke`: the keys of agents. */

import type { NewAgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { Arguments, Command, Example, Flags } from '../../../args/command.ts'
import { commandError, usageError } from '../../../exit.ts'
import { printList } from '../../../print-list.ts'
import { controlExits, controlFlags } from '../connect/control-flags.ts'
import { nameOf } from '../connect/ids.ts'
import { show, terminalWidth } from '../connect/screen.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { keyLines } from '../text/fleet-text.ts'
import { agentArgs } from './control-agent.ts'
import { keyFlags, showKey } from './show-key.ts'

const makeFlags = { ...keyFlags, ...controlFlags } as const satisfies Flags

function making(examples: readonly Example[], make: (control: Control, id: string) => Promise<NewAgentKey>) {
  return {
    flags: makeFlags,
    args: agentArgs,
    examples,
    exits: controlExits,
    async run(context, given, { agent }) {
      await withControl(context, given, async (control) => {
        showKey(context, { made: await make(control, nameOf('agent', agent)), json: given.json ?? false, to: given.to })
      })
    },
  } as const satisfies Command<typeof makeFlags, typeof agentArgs>
}

export const create = making(
  [
    ['sysadmin', 'shown this once; the control plane keeps its SHA-256'],
    ['sysadmin --to sysadmin.key', 'into a file that only you can read'],
  ],
  (control, id) => control.fleet.newKey(id),
)

export const rotate = making(
  [['sysadmin --to sysadmin.key', 'a new key; all others of this agent end at once, what runs goes on']],
  (control, id) => control.fleet.rotateKey(id),
)

export const list = {
  flags: controlFlags,
  args: agentArgs,
  examples: [['sysadmin', 'when each was made and last used; the keys themselves are not stored']],
  exits: controlExits,
  async run(context, given, { agent }) {
    await withControl(context, given, async (control) => {
      const keys = await control.fleet.keys(nameOf('agent', agent))
      const none = `${agent} has no key; make one: braidclaw control key new ${agent}`
      printList(context, { items: keys, json: given.json ?? false, lines: keyLines(keys, Date.now(), terminalWidth()), none })
    })
  },
} as const satisfies Command<typeof controlFlags, typeof agentArgs>

const revokeArgs = {
  ...agentArgs,
  key: { type: 'text', optional: true, about: 'Which one; may be left out where there is only one' },
} as const satisfies Arguments

export const revoke = {
  flags: controlFlags,
  args: revokeArgs,
  examples: [['sysadmin', 'its next request is refused, and its leases are released']],
  exits: controlExits,
  async run(context, given, { agent: typed, key }) {
    const agent = nameOf('agent', typed)
    await withControl(context, given, async (control) => {
      const revoked = await control.fleet.revokeKey(agent, key ?? (await onlyKey(control, agent)))
      show(context, { json: given.json ?? false, value: revoked, text: `revoked: key ${revoked.key_id} of ${agent}\n` })
    })
  },
} as const satisfies Command<typeof controlFlags, typeof revokeArgs>

async function onlyKey(control: Control, agent: string): Promise<string> {
  const keys = (await control.fleet.keys(agent)).filter(({ revoked_at: revoked }) => revoked === null)
  const [first, second] = keys
  if (first === undefined) throw commandError(`${agent} has no key in force`)
  if (second === undefined) return first.key_id
  throw usageError(`${agent} has ${keys.length} keys in force; name one: ${keys.map((each) => each.key_id).join(', ')}`)
}
