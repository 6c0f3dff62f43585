/** The examples of docs/filter.md, run as they stand there, each over the replies of a model. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'
import { home, scripted } from '../support/turns.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/filter.md'), 'utf8')
const examples = [...page.matchAll(/```sh\n(.*?)```\n```text\n(.*?)```/gs)].map(([, script = '', printed = '']) => ({ script, printed }))

/** What the model says, by what stands in the example. */
const replies: readonly (readonly [in_: string, reply: object])[] = [
  ['loop.sh', { text: 'Here it is:\n\n```sh\nfor file in *.md; do echo "$file"; done\n```\n\nRun it with sh.' }],
  ['bio', { text: '```json\n{"name": "Rex", "age": 4, "bio": "He barks."}\n```' }],
  ['why', { text: '{"name": "Rex", "age": "four"}' }],
  ['tree.json', { text: '{"name": "Ada", "children": [{"name": "Bob"}]}' }],
  ['-a error.log', { text: '{{last_user_message}}' }],
  ['-t recipe', { text: '{{last_user_message}}' }],
  ['timeout=30', { text: 'Hi!' }],
  ['--cid', { text: 'Hi, Ada!', usage: { input_tokens: 9, output_tokens: 3 } }],
]

test('each has what it prints, and a reply', () => {
  expect(examples).toHaveLength(replies.length)
  expect(page.match(/```sh/g)).toHaveLength(replies.length)
})

test.if(needs('jq')).each(examples)('$script', async ({ script, printed }) => {
  using at = home()
  at.file('error.log', 'ERROR db: no route\n')
  at.file('notes.md', 'restarted at noon\n')
  const [, reply = {}] = replies.find(([words]) => script.includes(words)) ?? []
  const { stdout, ...rest } = await shell(at, `set -e\n${script}`, scripted(at, [reply]).env)
  expect({ stdout: stdout.replaceAll(at.home, '~'), ...rest }).toEqual({ code: 0, stdout: printed, stderr: '' })
})

test('every flag of the table is one of the filter', async () => {
  using at = home()
  const { stdout } = await at.run(['filter', '--help'])
  const [, , table = ''] = page.split('\n\n')
  const rows = table.split('\n').map((row) => row.split(/(?<!\\)\|/))
  const cells = rows.map(([, theirs = '', ours = '']) => (ours.includes('the same') ? theirs + ours : ours))
  const flags = new Set(cells.flatMap((cell) => cell.match(/(?<=[`\s])--?[a-z][a-z-]*/g) ?? []))
  expect(flags.size).toBeGreaterThan(8)
  for (const flag of flags) expect(stdout).toMatch(new RegExp(`\\s\\[?${flag}[\\s\\],]`))
})
