/** Implements `discover`: finds tools, skills and rules by an intent. */

import { join } from 'node:path'
import { isWireProvider, providerNamed } from '../../../config/config.ts'
import type { Hit } from '../../../discovery/hybrid-index.ts'
import type { Embedder } from '../../../discovery/stored-index.ts'
import type { Setup } from '../../../host/api.ts'
import { toolFacts } from '../../../host/records/tools.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { type Discovered, discoveredKinds, lineOf, openDiscovery } from '../../../host/toolset/discover.ts'
import { visible } from '../../../kit/text.ts'
import { createEmbedder } from '../../../library/discovery.ts'
import { baseUrlOf } from '../../../providers/wire/provider-settings.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'

export const discover = command({
  flags: {
    kind: { type: 'choice', values: discoveredKinds, many: true, about: 'Only hits of this kind' },
    limit: { type: 'whole', min: 1, max: 50, default: 5, about: 'How many at most' },
    explain: { type: 'boolean', about: 'Say of each hit why it was found, and what was left out' },
    embedder: { type: 'text', about: 'Compare meanings too: PROVIDER/MODEL, where the provider serves /v1/embeddings' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  args: { intent: { type: 'text', many: true, about: 'What is to be done' } },
  examples: [
    ['"extract text from a PDF"', 'the best five'],
    ['"how are releases made" --kind rule --explain', 'of the documents that AGENTS.md links to'],
  ],
  async run(context, { kind: kinds, limit, explain = false, embedder, workspace: named, json = false }, { intent: words }) {
    const setup = loadSetup(context, { workspace: named })
    const workspace = workspaceOf(setup)
    const store =
      embedder === undefined ? {} : { embedder: await embedderOf(setup, embedder), dbPath: join(setup.paths.home, 'run/discovery.json') }
    const discovery = await openDiscovery(setup, { workspace, tools: await toolFacts(setup), ...store })
    const hits = await discovery.search(words.join(' '), { limit, kinds })
    if (explain) for (const notice of discovery.notices()) context.process.stderr.write(`note: ${visible(notice)}\n`)
    printList(context, {
      items: hits.map(({ entry: { context: _, params: __, ...entry }, score, why }) => ({ ...entry, score, why })),
      json,
      lines: hits.map((hit) => `${lineOf(hit)}${explain ? `\n  ${whyOf(hit)}` : ''}`),
      none: 'nothing here fits',
    })
  },
})

function whyOf({ score, why: { words, ...legs } }: Hit<Discovered>): string {
  const ranks = Object.entries(legs).map(([leg, { rank, score: own }]) => `${leg} ${rank} (${own.toFixed(2)})`)
  return `score ${score.toFixed(4)}: ${ranks.join(', ')}; words: ${words.length === 0 ? 'none' : words.join(' ')}`
}

/** @throws CliExit when the provider is unknown, or has no server that could serve embeddings */
async function embedderOf({ config, context: { env } }: Pick<Setup, 'config' | 'context'>, given: string): Promise<Embedder> {
  const [, name = '', model = ''] = /^([^/]+)\/(.+)$/.exec(given) ?? []
  const found = providerNamed(config, name)
  const server = found && isWireProvider(found) && found.kind !== 'anthropic' ? { ...found, model } : undefined
  const baseUrl = server && baseUrlOf(server)
  if (!server || !baseUrl)
    throw usageError(
      `--embedder ${JSON.stringify(given)}: write PROVIDER/MODEL, with one of [providers.models] that has a base_url and serves /v1/embeddings`,
    )
  return createEmbedder({ baseUrl, model, apiKey: env[server.apiKeyEnv ?? ''] })
}
