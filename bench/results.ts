/** bench/RESULTS.md: one section a benchmark, each replaced by its own run and left alone by the others. */

import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

const page = join(import.meta.dir, 'RESULTS.md')

const HEAD = `# Results

Figures of the machine named in each section; ratios against floors measured in the same run are what counts. \`npm run bench\` writes
the sections "Turns" and "Parts". The programs run in turn, round after round: "rounds" is the median of the ratios of each round, and
decides, since what else the machine does in a round falls on both; "medians" and "minima" are the ratios of those. \`one-tool-key\` is
\`one-tool\` with a key as long as real ones, for which everything that is shown and kept is searched.
`

export async function writeSection(name: string, text: string): Promise<void> {
  const old = (await Bun.file(page).exists()) ? await Bun.file(page).text() : HEAD
  await Bun.write(page, replaceSection(old, name, text))
}

/** Replaces the section with this title, or adds it at the end. */
export function replaceSection(page: string, name: string, text: string): string {
  const title = `## ${name}\n`
  const section = `${title}\n${machine()}\n\n${text.trim()}\n`
  const start = `\n${page}`.indexOf(`\n${title}`)
  if (start < 0) return `${page.trimEnd()}\n\n${section}`
  const end = page.indexOf('\n## ', start + title.length)
  return `${page.slice(0, start)}${section}${end < 0 ? '' : page.slice(end)}`
}

function machine(): string {
  const [first] = cpus()
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, Bun ${Bun.version}, ${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}.`
}
