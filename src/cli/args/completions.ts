/** Proposes known names for shell completion. On any error it proposes nothing, because a completion must not print errors. */

import { existsSync } from 'node:fs'
import type { CliContext } from '../../channels/terminal/context.ts'

export async function proposeProviders(context: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const { loadSetup } = await import('../../host/setup/setup.ts')
    return Object.keys(loadSetup(context).config.providers.models).filter((name) => name.startsWith(partial))
  })
}

export async function proposeTools(context: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ loadSetup }, { createToolRuntime }, { policyOf }] = await Promise.all([
      import('../../host/setup/setup.ts'),
      import('../../host/toolset/tool-executor.ts'),
      import('../../host/setup/effective-policy.ts'),
    ])
    const setup = loadSetup(context)
    const toolRuntime = await createToolRuntime({
      setup,
      policy: policyOf(setup.config, setup.paths, context.env),
      conversationId: 'completion',
    })
    return toolRuntime.tools.map(({ name }) => name).filter((name) => name.startsWith(partial))
  })
}

export async function proposeAgents(context: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ loadSetup }, { agentsOf }] = await Promise.all([
      import('../../host/setup/setup.ts'),
      import('../../host/setup/agent-profile.ts'),
    ])
    return agentsOf(loadSetup(context)).filter((id) => id.startsWith(partial))
  })
}

export async function proposeChanges(context: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ loadSetup }, { nameOf }, { openKeptChanges }] = await Promise.all([
      import('../../host/setup/setup.ts'),
      import('../../host/changes/kept-changes.ts'),
      import('../../host/records/integrity/open-kept-changes.ts'),
    ])
    const kept = (await openKeptChanges(loadSetup(context), noMemory)).list()
    return ['last', ...kept.map(nameOf)].filter((name) => name.startsWith(partial))
  })
}

/** A list of names decides nothing. */
const noMemory = () => Promise.reject(new Error('a completion applies nothing'))

/** Names of tokens in force. */
export async function proposeTokens(context: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ loadSetup }, { withMemory }] = await Promise.all([
      import('../../host/setup/setup.ts'),
      import('../../host/open/open-records.ts'),
    ])
    const setup = loadSetup(context)
    if (!existsSync(setup.config.memory.path)) return []
    const rows = await withMemory(setup, ({ tokens }) => tokens.list())
    return rows.flatMap(({ name, revoked }) => (revoked === undefined && name.startsWith(partial) ? [name] : []))
  })
}

async function quietly(find: () => Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await find()
  } catch {
    return []
  }
}
