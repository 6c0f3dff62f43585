/** Help that fits a terminal of 80 columns: prose and lists are wrapped, command lines stay whole, so that they can be copied. */

import type { Application } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'

const width = 80

type Integration = Application<CliContext>['integrations'][string]

/** The same application; whatever its flags print (--help, --help-all) is fitted. */
export function withFittedHelp(app: Application<CliContext>): Application<CliContext> {
  const integrations = Object.entries(app.integrations).map(([name, integration]) => [name, fitted(integration)] as const)
  return { ...app, integrations: Object.fromEntries(integrations) }
}

function fitted(integration: Integration): Integration {
  const { flag } = integration
  if (!flag) return integration
  return {
    ...integration,
    flag: {
      ...flag,
      async run(app, found) {
        const printed: string[] = []
        const stdout = { ...this.process.stdout, write: (text: string) => void printed.push(text) }
        await flag.run.call({ ...this, process: { ...this.process, stdout } }, app, found)
        this.process.stdout.write(narrowed(printed.join('')))
      },
    },
  }
}

/** Blocks stand between empty lines; one that begins with the name of a list is a table of names and meanings. */
function narrowed(help: string): string {
  return help
    .split('\n\n')
    .map((block) => (/^(FLAGS|COMMANDS|ARGUMENTS)\n/.test(block) ? table(block) : prose(block)))
    .join('\n\n')
}

/** Lines that are indented by two are command lines, or were laid out by whoever wrote them. */
function prose(block: string): string {
  const lines = block.split('\n').map((line) => {
    const indent = line.length - line.trimStart().length
    return indent === 0 || indent === 4 ? hang(line.slice(0, indent), line.trim()) : line.trimEnd()
  })
  return lines.join('\n')
}

/** What a flag accepts stands right behind its meaning, in place of a column of its own. */
function table(block: string): string {
  const end = block.endsWith('\n') ? '\n' : ''
  const [head = '', ...rows] = block.trimEnd().split('\n')
  const column = meanings(rows)
  const wrapped = rows.map((row) => hang(row.slice(0, column), row.slice(column).replaceAll(/ {2,}/g, ' ')))
  return [head, ...wrapped].join('\n') + end
}

/** Where in each row, after a name and two spaces, the meaning begins. */
function meanings(rows: readonly string[]): number {
  const begins = (row: string, at: number) => row.slice(0, at).trim() !== '' && row.slice(at - 2, at) === '  ' && (row[at] ?? ' ') !== ' '
  const [first = ''] = rows
  for (let at = 3; at < first.length; at++) if (rows.every((row) => begins(row, at))) return at
  return 0
}

function hang(head: string, text: string): string {
  const lines = Bun.wrapAnsi(text, Math.max(width - head.length, width / 2)).split('\n')
  return head + lines.join(`\n${' '.repeat(head.length)}`)
}
