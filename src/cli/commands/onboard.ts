/** `onboard`: init with questions. Without a terminal it says so instead of guessing. */

import { existsSync } from 'node:fs'
import { editorStream } from '../../channels/editor-stream.ts'
import { isTerminal } from '../../channels/tty.ts'
import { homePaths } from '../../config/paths.ts'
import { type Proposal, proposeProviders } from '../../config/template.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { CliContext } from '../world.ts'
import { initialise } from './init.ts'

export async function onboard(this: CliContext): Promise<void> {
  if (!isTerminal(0) || !isTerminal(1)) {
    throw new CliExit(exitCodes.usage, 'error: onboard asks questions and needs a terminal; use "braidclaw init" in scripts')
  }
  const { config } = homePaths(this.home)
  if (existsSync(config))
    throw new CliExit(exitCodes.error, `error: ${config} exists and is never overwritten; edit it, or move it away and run onboard again`)
  const { intro, outro, select, text, isCancel, cancel } = await import('@clack/prompts')
  const output = editorStream(this.process.stdout)
  intro('BraidClaw', { output })
  const workspace = await text({
    message: 'Which folder may the agent work in?',
    initialValue: '~/braidclaw-workspace',
    validate: isGiven,
    output,
  })
  const found = proposeProviders(this.env)
  const provider = isCancel(workspace)
    ? workspace
    : await select({
        message: 'Which model should answer?',
        options: [...found.map(option), { value: 'local', label: 'The offline helper (no language model)' }],
        output,
      })
  if (isCancel(workspace) || isCancel(provider)) {
    cancel('Nothing was changed.', { output })
    throw new CliExit(exitCodes.cancelled)
  }
  const proposals = [...found].sort((a, b) => Number(b.name === provider) - Number(a.name === provider))
  await initialise(this, { workspace, json: false, proposals: provider === 'local' ? [] : proposals })
  outro('Ready. Say hello: braidclaw agent', { output })
}

function isGiven(folder: string | undefined): string | undefined {
  return folder?.trim() ? undefined : 'A folder is needed, such as ~/braidclaw-workspace'
}

function option({ name, model, because }: Proposal): { value: string; label: string; hint: string } {
  return { value: name, label: escapeHidden(`${name}: ${model}`), hint: `${because} is set` }
}
