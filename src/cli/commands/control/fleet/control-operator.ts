/** Implements `control operator list | new | revoke`: the tokens of people and programs with all rights. */

import type { Arguments, Command, Flags } from '../../../args/command.ts'
import { printList } from '../../../print-list.ts'
import { controlExits, controlFlags } from '../connect/control-flags.ts'
import { nameOf } from '../connect/ids.ts'
import { show, terminalWidth } from '../connect/screen.ts'
import { withControl } from '../connect/with-control.ts'
import { operatorLines } from '../text/fleet-text.ts'
import { keyFlags, showSecret } from './show-key.ts'

const newFlags = { ...keyFlags, ...controlFlags } as const satisfies Flags
const newArgs = { name: { type: 'text', about: 'Who uses it; records show this name' } } as const satisfies Arguments
const revokeArgs = { id: { type: 'text', about: 'Its id, as "control operator list" shows it' } } as const satisfies Arguments

export const create = {
  flags: newFlags,
  args: newArgs,
  examples: [
    ['anna', 'shown this once; whoever has it may do everything'],
    ['ci --to ci.token', 'into a file that only you can read'],
  ],
  exits: controlExits,
  async run(context, given, { name }) {
    await withControl(context, given, async (control) => {
      const made = await control.fleet.newOperator(nameOf('operator', name))
      showSecret(context, {
        secret: made.token,
        name: `operator token ${made.id} of ${name}`,
        value: made,
        json: given.json ?? false,
        to: given.to,
      })
    })
  },
} as const satisfies Command<typeof newFlags, typeof newArgs>

export const list = {
  flags: controlFlags,
  examples: [['', 'names and ids; the tokens themselves are not stored']],
  exits: controlExits,
  async run(context, given) {
    await withControl(context, given, async (control) => {
      const operators = await control.fleet.operators()
      printList(context, {
        items: operators,
        json: given.json ?? false,
        lines: operatorLines(operators, Date.now(), terminalWidth()),
        none: 'no operator tokens',
      })
    })
  },
} as const satisfies Command<typeof controlFlags>

export const revoke = {
  flags: controlFlags,
  args: revokeArgs,
  examples: [['op-2', 'its next request is refused']],
  exits: controlExits,
  async run(context, given, { id }) {
    await withControl(context, given, async (control) => {
      const revoked = await control.fleet.revokeOperator(nameOf('operator', id))
      show(context, { json: given.json ?? false, value: revoked, text: `revoked: operator token ${revoked.id} of ${revoked.name}\n` })
    })
  },
} as const satisfies Command<typeof controlFlags, typeof revokeArgs>
