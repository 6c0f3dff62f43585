/** Tests the names under which tools are offered, and how a server's question reaches a person. */

import { expect, test } from 'bun:test'
import type { Schema } from '../../../../runtime/port.ts'
import { elicitFrom, offeredName } from './mcp-tools.ts'

const signal = new AbortController().signal

test('a name has the letters of every vendor, 64 at most, and two long ones stay two', () => {
  expect(offeredName('my_server', 'read.file now')).toBe('mcp_my-server_read_file_now')
  const [one, two] = ['a', 'b'].map((end) => offeredName('s', `${'x'.repeat(90)}${end}`))
  expect([one?.length, two?.length, one === two]).toEqual([64, 64, false])
})

const schema: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name' },
    age: { type: 'integer' },
    sure: { type: 'boolean' },
    size: { type: 'string', enum: ['S', 'L'] },
  },
  required: ['name', 'age'],
}

async function asked(answers: readonly (string | undefined)[], message = 'Who are you?') {
  const questions: string[] = []
  const left = [...answers]
  const elicit = elicitFrom('small', async (question) => {
    questions.push(question)
    return left.shift()
  })
  return { ...(await elicit({ message, schema, signal })), questions }
}

test('each field is a question that names the server; answers have the type of the field', async () => {
  const { questions, ...answer } = await asked(['Ann', 'old', '42', '', 'L'])
  expect(answer).toEqual({ action: 'accept', content: { name: 'Ann', age: 42, size: 'L' } })
  expect(questions[0]).toBe('The MCP server small asks: Who are you?\nYour name (string)\n> ')
  expect(questions).toHaveLength(5)
})

test('no answer and a second wrong one decline; the words of the server cannot draw on the terminal', async () => {
  expect(await asked([undefined])).toMatchObject({ action: 'decline' })
  expect(await asked(['Ann', 'old', 'older'])).toMatchObject({ action: 'decline' })
  expect((await asked([undefined], '\u001b[2J\u202eWho?')).questions[0]).toStartWith('The MCP server small asks: \\u{1b}[2J\\u{202e}Who?')
})
