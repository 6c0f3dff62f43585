/** Implements `template new | list | show | edit | delete`: prompts that the filter asks with `-t`. */

import { rmSync } from 'node:fs'
import { readSchema } from '../../../channels/filter/answer-form.ts'
import { findTemplate, readTemplate, templatesIn, writeTemplate } from '../../../channels/filter/template.ts'
import { runEditor } from '../../../channels/terminal/approval-prompt.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { cut, flat } from '../../../kit/text.ts'
import { command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { commandError, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'

const nameArgument = { name: { type: 'text', about: 'The name of the template', complete: 'templates' } } as const

export const create = command({
  flags: {
    system: { type: 'text', short: 's', about: 'Its system prompt' },
    model: { type: 'text', short: 'm', about: 'The model it asks: provider/model' },
    schema: { type: 'text', about: 'The schema of its answer, as with --schema' },
    extract: { type: 'boolean', short: 'x', about: 'Print only the first fenced code block of its answer' },
  },
  args: {
    name: { type: 'text', about: 'Letters, digits, "-" and "_"' },
    prompt: { type: 'text', optional: true, about: 'The prompt; $input is the question, $NAME a variable, $$ a dollar sign' },
  },
  examples: [['summary -s "Summarise in one line"', 'used as: braidclaw -t summary < notes.txt']],
  run(context, template, { name, prompt }) {
    if (prompt === undefined && Object.keys(template).length === 0)
      throw usageError(`a template needs a prompt or a system prompt: braidclaw template new ${name} -s "Summarise in one line"`)
    if (template.schema !== undefined) readSchema(template.schema)
    context.process.stdout.write(`${writeTemplate(context.home, name, { ...(prompt !== undefined && { prompt }), ...template })}\n`)
  },
})

export const list = command({
  flags: jsonFlag,
  examples: [['', 'names, and how each begins']],
  run(context, { json = false }) {
    const begin = (path: string) => cut(flat(findTemplate(path, context).text.trim()), 100)
    const items = templatesIn(context.home).map((each) => ({ ...each, begins: begin(each.path) }))
    const lines = items.map(({ name, begins }) => `${name.padEnd(16)}  ${begins}`)
    printList(context, { items, json, lines, none: 'no templates yet; to make one: braidclaw template new NAME' })
  },
})

export const show = command({
  args: nameArgument,
  examples: [['summary', 'the file as it is']],
  run: (context, _, { name }) => context.process.stdout.data(findTemplate(name, context).text),
})

export const edit = command({
  args: nameArgument,
  examples: [['summary', 'in VISUAL or EDITOR; a mistake is told when the editor ends']],
  async run(context, _, { name }) {
    const { path } = findTemplate(name, context)
    if (!isTerminal(0)) throw usageError(`an editor needs a terminal; the file is ${path}`)
    const code = await runEditor({ files: [path], env: context.env })
    if (code !== 0) throw commandError(`the editor failed (${code ?? 'it did not start'}); EDITOR or VISUAL names another`)
    await readTemplate(findTemplate(name, context))
  },
})

export const remove = command({
  args: nameArgument,
  examples: [['summary', 'removes its file']],
  run: (context, _, { name }) => rmSync(findTemplate(name, context).path),
})
