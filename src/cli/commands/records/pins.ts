/** Implements `memory pin | pins | unpin`: facts that stay in the system prompt of an agent. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { type PinRecords, pinRecords } from '../../../host/records/pins.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { Pin } from '../../../memory/agent-files/pins.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { agentFlag, jsonFlag } from '../../args/flags.ts'

const flags = { ...agentFlag, ...jsonFlag } as const satisfies Flags
const pinArgs = { fact: { type: 'text', many: true, about: 'What is to be kept, word for word' } } as const satisfies Arguments
const unpinArgs = { number: { type: 'whole', about: 'As "memory pins" shows it' } } as const satisfies Arguments

export const pin = {
  flags,
  args: pinArgs,
  examples: [['"I live in Lisbon"', 'for the agent of every turn']],
  run(context, { agent, json = false }, { fact: words }) {
    const pinned = pinsOf(context, agent).add(words.join(' '))
    context.process.stdout.write(json ? `${JSON.stringify(pinned)}\n` : `pinned as ${pinned.number}: ${pinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof pinArgs>

export const pins = {
  flags,
  examples: [['--agent coder', 'to one agent']],
  run(context, { agent, json = false }) {
    const { pins: found, unreadable } = pinsOf(context, agent).listed()
    if (unreadable > 0) context.process.stderr.write(`warning: pins.jsonl has ${count(unreadable, 'unreadable line')}, left aside\n`)
    if (found.length === 0 && !json) context.process.stderr.write('nothing is pinned\n')
    context.process.stdout.write(json ? `${JSON.stringify(found)}\n` : found.map(pinLine).join(''))
  },
} as const satisfies Command<typeof flags>

export const unpin = {
  flags,
  args: unpinArgs,
  examples: [['2', 'the second']],
  run(context, { agent, json = false }, { number }) {
    const unpinned = pinsOf(context, agent).remove(number)
    context.process.stdout.write(json ? `${JSON.stringify(unpinned)}\n` : `unpinned: ${unpinned.text}\n`)
  },
} as const satisfies Command<typeof flags, typeof unpinArgs>

function pinLine({ number, text }: Pin): string {
  return `${number}  ${text.replaceAll('\n', '\n   ')}\n`
}

/** @throws FailureError `usage` when there is no such agent */
function pinsOf(context: CliContext, agent: string | undefined): PinRecords {
  return pinRecords(loadSetup(context, agent === undefined ? {} : { agent }))
}
