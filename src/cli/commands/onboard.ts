/** `onboard`: init with questions. Without a terminal it says so instead of guessing. */

import { isTerminal } from '../../channels/tty.ts'
import { type Proposal, proposeProviders } from '../../config/template.ts'
import type { CliContext } from '../context.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { initialise } from './init.ts'

export async function onboard(this: CliContext): Promise<void> {
  if (!isTerminal(0) || !isTerminal(1)) {
    throw new CliExit(exitCodes.usage, 'error: onboard asks questions and needs a terminal; use "braidclaw init" in scripts')
  }
  const { intro, outro, select, text, isCancel, cancel } = await import('@clack/prompts')
  intro('BraidClaw')
  const workspace = await text({ message: 'Which folder may the agent work in?', initialValue: '~/braidclaw-workspace' })
  const found = proposeProviders(this.env)
  const provider = isCancel(workspace)
    ? workspace
    : await select({
        message: 'Which model should answer?',
        options: [...found.map(option), { value: 'local', label: 'The offline helper (no language model)' }],
      })
  if (isCancel(workspace) || isCancel(provider)) {
    cancel('Nothing was changed.')
    throw new CliExit(exitCodes.cancelled)
  }
  const proposals = [...found].sort((a, b) => Number(b.name === provider) - Number(a.name === provider))
  await initialise(this, { workspace, json: false, proposals: provider === 'local' ? [] : proposals })
  outro('Ready. Say hello: braidclaw agent')
}

function option({ name, model, because }: Proposal): { value: string; label: string; hint: string } {
  return { value: name, label: `${name}: ${model}`, hint: `${because} is set` }
}
