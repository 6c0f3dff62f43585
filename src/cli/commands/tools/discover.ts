/** Implements `discover`: finds tools, skills and rules by an intent. */

import { toolFacts } from '../../../host/records/tools.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { discoveredKinds, lineOf, openDiscovery } from '../../../host/toolset/discover.ts'
import { visible } from '../../../kit/text.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { printList } from '../../print-list.ts'

export const discover = command({
  flags: {
    kind: { type: 'choice', values: discoveredKinds, many: true, about: 'Only hits of this kind' },
    limit: { type: 'whole', min: 1, max: 50, default: 5, about: 'How many at most' },
    explain: { type: 'boolean', about: 'Say of each hit why it was found, and what was left out' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  args: { intent: { type: 'text', many: true, about: 'What is to be done' } },
  examples: [
    ['"extract text from a PDF"', 'the best five'],
    ['"how are releases made" --kind rule --explain', 'of the documents that AGENTS.md links to'],
  ],
  async run(context, { kind: kinds, limit, explain = false, workspace: named, json = false }, { intent: words }) {
    const setup = loadSetup(context, { workspace: named })
    const discovery = await openDiscovery(setup, { workspace: workspaceOf(setup), tools: await toolFacts(setup) })
    const hits = discovery.search(words.join(' '), { limit, accept: ({ kind }) => !kinds || kinds.some((one) => one === kind) })
    if (explain) for (const notice of discovery.notices) context.process.stderr.write(`note: ${visible(notice)}\n`)
    printList(context, {
      items: hits.map(({ entry: { context: _, params: __, ...entry }, score, why }) => ({ ...entry, score, why })),
      json,
      lines: hits.map((hit) => (explain ? `${lineOf(hit)}\n  ${JSON.stringify(hit.why)}` : lineOf(hit))),
      none: 'nothing here fits',
    })
  },
})
