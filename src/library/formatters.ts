/** Writes tools, calls, results and relations as text for FunctionGemma, Gemma 4 and other models. Exported as `braidclaw/formatters`. */

import { createGemmaParser, type GemmaDialect, type Members } from '../providers/chat/function-gemma.ts'
import { lineOf, type RelationNode } from './relations.ts'

export type { GemmaDialect, GemmaParser, GemmaPiece, ToolDefinition } from '../providers/chat/function-gemma.ts'
export {
  createGemmaParser,
  developerText,
  formatForFunctionGemma,
  formatFunctionGemmaResponse,
  gemmaDialects,
  neutralizeControlTokens,
} from '../providers/chat/function-gemma.ts'

export type ParsedFunctionCall = { name: string; args: Members }

/** Returns the first call of a whole reply that can be read. */
export function parseFunctionGemmaCall(output: string, dialect: GemmaDialect = 'functiongemma'): ParsedFunctionCall | undefined {
  const parser = createGemmaParser(dialect)
  for (const piece of [...parser.push(output), ...parser.end()])
    if (piece.type === 'call' && piece.args) return { name: piece.name, args: piece.args }
}

/**
 * Returns the nodes as a tree, a line each, with the ids of the parents that are among them. A node stands once, below one parent. Lines are
 * indented by twenty levels at most.
 */
export function formatRelationsForContext(nodes: readonly Omit<RelationNode, 'createdAt'>[]): string {
  const below = new Map(nodes.map(({ id }) => [id, [] as (typeof nodes)[number][]]))
  for (const node of nodes) for (const parent of node.parents) below.get(parent)?.push(node)
  const roots = nodes.filter(({ parents }) => !parents.some((parent) => below.has(parent)))
  const waiting = roots.map((node) => ({ node, depth: 0 })).reverse()
  const lines = new Map<string, string>()
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { node, depth } = at
    if (lines.has(node.id)) continue
    const parents = node.parents.filter((parent) => below.has(parent))
    lines.set(node.id, '  '.repeat(Math.min(depth, 20)) + lineOf(node, 'depends on', parents))
    for (const child of [...(below.get(node.id) ?? [])].reverse()) waiting.push({ node: child, depth: depth + 1 })
  }
  return [...lines.values()].join('\n')
}
