/** Proposes the names in the home for shell completion. On any error it proposes nothing, because a completion must not print errors. */

import { existsSync } from 'node:fs'
import { templatesIn } from '../../channels/filter/template.ts'
import type { CliContext } from '../../channels/terminal/context.ts'
import { nameOf } from '../../host/changes/kept-changes.ts'
import { withMemory } from '../../host/open/open-records.ts'
import { openKeptChanges } from '../../host/records/integrity/open-kept-changes.ts'
import { agentsOf } from '../../host/setup/agent-profile.ts'
import { policyOf } from '../../host/setup/effective-policy.ts'
import { loadSetup } from '../../host/setup/setup.ts'
import { workspaceOf } from '../../host/setup/workspace-folder.ts'
import { configuredServers } from '../../host/toolset/guests/mcp/configured-servers.ts'
import { openPlugins } from '../../host/toolset/guests/plugins/plugins.ts'
import { openSkills } from '../../host/toolset/guests/skills/skills.ts'
import { createToolRuntime } from '../../host/toolset/tool-executor.ts'
import { findSops } from '../../sop/find-sops.ts'
import type { HomeNames } from './command.ts'

/** Returns the names of this kind that begin with `partial`. */
export async function namesInHome(kind: HomeNames, context: CliContext, partial: string): Promise<readonly string[]> {
  try {
    return (await finders[kind](context)).filter((name) => name.startsWith(partial))
  } catch {
    return []
  }
}

const finders: { readonly [Kind in HomeNames]: (context: CliContext) => Promise<readonly string[]> } = {
  agents: async (context) => agentsOf(loadSetup(context)),
  async changes(context) {
    const kept = (await openKeptChanges(loadSetup(context), noMemory)).list()
    return ['last', ...kept.map(nameOf)]
  },
  async conversations(context) {
    const setup = loadSetup(context)
    if (!existsSync(setup.config.memory.path)) return []
    const found = await withMemory(setup, ({ conversations }) => conversations.list({ limit: 50 }))
    return ['last', ...found.map(({ conversationId }) => conversationId)]
  },
  mcp: async (context) => configuredServers(loadSetup(context)).servers.map(({ id }) => id),
  plugins: async ({ home }) =>
    openPlugins(home)
      .list()
      .map(({ name }) => name),
  providers: async (context) => Object.keys(loadSetup(context).config.providers.models),
  async skills(context) {
    const setup = loadSetup(context)
    const { skills } = await (await openSkills(setup, workspaceOf(setup))).findAll()
    return skills.map(({ skill }) => skill.name)
  },
  sops: async (context) => (await findSops(loadSetup(context), new Map())).map(({ name }) => name),
  templates: async ({ home }) => templatesIn(home).map(({ name }) => name),
  async tokens(context) {
    const setup = loadSetup(context)
    if (!existsSync(setup.config.memory.path)) return []
    const rows = await withMemory(setup, ({ tokens }) => tokens.list())
    return rows.filter(({ revoked }) => revoked === undefined).map(({ name }) => name)
  },
  async tools(context) {
    const setup = loadSetup(context)
    const policy = policyOf(setup.config, setup.paths, context.env)
    const { tools } = await createToolRuntime({ setup, policy, conversationId: 'completion' })
    return tools.map(({ name }) => name)
  },
}

/** A list of names decides nothing. */
const noMemory = () => Promise.reject(new Error('a completion applies nothing'))
