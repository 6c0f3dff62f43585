/**
 * Writes the table of model facts from a published package: `bun scripts/model-facts.ts FOLDER`, where FOLDER holds the package, as
 * `npm pack @mariozechner/pi-ai` and `tar xzf` leave it, and `--date` says when that version was published.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { vendorHosts } from '../src/providers/wire/facts/model-facts.ts'

type Listed = {
  readonly id: string
  readonly input: readonly string[]
  readonly reasoning: boolean
  readonly cost: { readonly input: number; readonly output: number; readonly cacheRead: number; readonly cacheWrite: number }
  readonly contextWindow: number
  readonly maxTokens: number
}

type Listing = { readonly [vendor: string]: { readonly [id: string]: Listed } }

const unknown = '-'

/** The list writes 0 or a negative number for what it does not know. A model is free only when its name says so. */
function line({ id, input, reasoning, cost, contextWindow, maxTokens }: Listed): string {
  const isFree = id.endsWith(':free')
  const price = (dollars: number) => (dollars > 0 || isFree ? String(Math.max(0, Number(dollars.toFixed(6)))) : unknown)
  const isPriced = isFree || (cost.input > 0 && cost.output > 0)
  const prices = [cost.input, cost.output, cost.cacheRead, cost.cacheWrite].map((dollars) => (isPriced ? price(dollars) : unknown))
  return [id, count(contextWindow), count(maxTokens), ...prices, input.join('+') || unknown, reasoning ? 'yes' : 'no'].join(' ')
}

function count(tokens: number): string {
  return tokens > 0 ? String(tokens) : unknown
}

async function main(folder: string, date: string): Promise<void> {
  const { name, version }: { name: string; version: string } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { MODELS }: { MODELS: Listing } = await import(join(resolve(folder), 'dist/models.generated.js'))
  const vendors = [...new Set(Object.values(vendorHosts))].map((vendor) => {
    const lines = Object.values(MODELS[vendor] ?? {}).map(line)
    return `  ${JSON.stringify(vendor)}: \`\n${lines.toSorted().join('\n')}\n\`,`
  })
  const text = `/**
 * Lists what is known of the models of some vendors; \`scripts/model-facts.ts\` writes this file. A line is: id, context window, longest
 * answer, US dollars per million tokens in, out, read from the cache, written to the cache, what the model sees, and whether it reasons;
 * "-" is unknown.
 */

/** When the source was published, and which it is. */
export const catalogueSource = { date: '${date}', name: '${name} ${version}' } as const

export const catalogue: { readonly [vendor: string]: string } = {
${vendors.join('\n')}
}
`
  writeFileSync(join(import.meta.dir, '../src/providers/wire/facts/catalogue.ts'), text)
}

const [folder = '', flag, date = ''] = process.argv.slice(2)
if (folder === '' || flag !== '--date' || !/^\d{4}-\d\d-\d\d$/.test(date)) {
  process.stderr.write('usage: bun scripts/model-facts.ts FOLDER --date 2026-05-08\n')
  process.exit(2)
}
await main(folder, date)
