import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import { offlineReply, understand } from './offline-helper.ts'

const spec = (name: string, properties: readonly string[], required: readonly string[] = []): ToolSpec => ({
  name,
  description: '',
  parameters: { type: 'object', properties: Object.fromEntries(properties.map((each) => [each, { type: 'string' }])), required },
})

const tools = [
  spec('time', []),
  spec('file_list', ['path']),
  spec('file_read', ['path', 'offset', 'limit'], ['path']),
  spec('file_write', ['path', 'content'], ['path', 'content']),
  spec('search', ['pattern', 'glob', 'path']),
  spec('shell', ['command'], ['command']),
  spec('http', ['url', 'method'], ['url']),
  spec('memory_search', ['query'], ['query']),
]

function reply(question: string, options: { readonly tools?: readonly ToolSpec[]; readonly after?: readonly Message[] } = {}) {
  const messages: Message[] = [{ role: 'user', content: question }, ...(options.after ?? [])]
  const request: ChatRequest = { systemPrompt: '', messages, tools: options.tools ?? tools, model: '' }
  const { text, calls } = offlineReply(request)
  return { text, call: calls[0] === undefined ? undefined : [calls[0].name, JSON.parse(calls[0].raw)] }
}

const result = (name: string, content: string, isError = false): Message => ({ role: 'tool', callId: 'c', name, content, isError })

describe('does not pretend', () => {
  const strange = [
    'Write me a poem about the sea',
    'What is the capital of France?',
    'How many days are there in a leap year?',
    'Fix the bug in my code',
    'run the tests',
    'refactor everything',
    'Bonjour, comment ça va ?',
    'why is the sky blue',
    'what time did the train leave',
    '',
    '???',
    '🙂',
    'x'.repeat(100_000),
  ]
  test.each(strange)('%# says in one sentence what it is and how to connect a model', (question) => {
    const { text, call } = reply(question)
    expect(call).toBeUndefined()
    expect(text).toContain('not a language model')
    expect(text).toContain('braidclaw onboard')
    expect(text.split('\n').length).toBe(1)
  })

  test('asked for a summary it shows the file and says that it cannot sum up', () => {
    expect(reply('Summarize notes.txt').call).toEqual(['file_read', { path: 'notes.txt' }])
    expect(reply('Summarize notes.txt', { after: [result('file_read', 'abc')] }).text).toBe(
      'I cannot summarize, but `notes.txt` says:\n\nabc',
    )
  })

  test('a tool that it does not have is not called', () => {
    const { text, call } = reply('What files are in this project?', { tools: [spec('time', [])] })
    expect(call).toBeUndefined()
    expect(text).toContain('`file_list`')
    expect(text).toContain('The tools I have here: time.')
  })

  test('a tool whose arguments it does not know is not called', () => {
    expect(reply('Read a.txt', { tools: [spec('file_read', ['inode'], ['inode'])] }).call).toBeUndefined()
    expect(reply('What time is it?', { tools: [spec('time', ['zone'], ['zone'])] }).call).toBeUndefined()
  })

  test('a refusal is told as a refusal', () => {
    expect(reply('Run `rm -rf /`', { after: [result('shell', 'denied: rm is forbidden', true)] }).text).toBe(
      'The tool `shell` did not do it: denied: rm is forbidden',
    )
  })

  test('whatever is asked, only tools that are there are called, with all they require', () => {
    const words = fc.constantFrom(
      'read',
      'write',
      'to',
      'in',
      'find',
      'files',
      'what',
      'is',
      'the',
      'run',
      '`ls`',
      'a.txt',
      '"b c"',
      'https://x.y',
      'time',
      'memory',
      '*',
      '/',
      "'",
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(words, { maxLength: 9 }).map((each) => each.join(' ')),
        ),
        fc.subarray(tools),
        (question, available) => {
          const { text, call } = reply(question, { tools: available })
          const called = available.find((tool) => tool.name === call?.[0])
          if (call === undefined) expect(text).not.toBe('')
          else for (const name of called?.parameters.required ?? ['not available']) expect(call[1][name]).toBeString()
        },
      ),
    )
  })

  test('no sentence takes long to understand', () => {
    for (const part of ['write ', 'find a in ', 'what files ', '" ', 'read a. ', 'https://', 'tell me the date and ']) {
      expect(understand(part.repeat(2_000 / part.length)).kind).toBeString()
    }
  })
})

describe('answers through the tools', () => {
  const questions: readonly (readonly [string, string, object])[] = [
    ['What files are in this project?', 'file_list', { path: '.' }],
    ['list files', 'file_list', { path: '.' }],
    ['Please list the files in src/app', 'file_list', { path: 'src/app' }],
    ['show me all files in the `docs` folder', 'file_list', { path: 'docs' }],
    ['ls', 'file_list', { path: '.' }],
    ['ls src', 'file_list', { path: 'src' }],
    ['What’s in this folder?', 'file_list', { path: '.' }],
    ['what is in src', 'file_list', { path: 'src' }],
    ['Can you tell me which files are here?', 'file_list', { path: '.' }],
    ['read README.md', 'file_read', { path: 'README.md' }],
    ['Show me the readme', 'file_read', { path: 'README.md' }],
    ['cat src/host/run/conversation.ts', 'file_read', { path: 'src/host/run/conversation.ts' }],
    ['What does package.json say?', 'file_read', { path: 'package.json' }],
    ["what's in notes.txt?", 'file_read', { path: 'notes.txt' }],
    ['Could you please open `my notes`?', 'file_read', { path: 'my notes' }],
    ['read /etc/passwd', 'file_read', { path: '/etc/passwd' }],
    ['Read .gitignore', 'file_read', { path: '.gitignore' }],
    ['find TODO', 'search', { pattern: 'TODO', path: '.' }],
    ['search for TODO', 'search', { pattern: 'TODO', path: '.' }],
    ['Search for "open door" in src', 'search', { pattern: 'open door', path: 'src' }],
    ['grep createAgent in the project', 'search', { pattern: 'createAgent', path: '.' }],
    ['Where is createAgent defined?', 'search', { pattern: 'createAgent', path: '.' }],
    ['find a.b(c)', 'search', { pattern: 'a\\.b\\(c\\)', path: '.' }],
    ['Which files contain TODO?', 'search', { pattern: 'TODO', path: '.' }],
    ['find *.ts', 'search', { glob: '*.ts', path: '.' }],
    ['which files match src/**/*.test.ts', 'search', { glob: 'src/**/*.test.ts', path: '.' }],
    ['write "hello world" to notes.txt', 'file_write', { path: 'notes.txt', content: 'hello world' }],
    ['Write hello to the file `a.txt`', 'file_write', { path: 'a.txt', content: 'hello' }],
    ['create a file called b.md with "# Title"', 'file_write', { path: 'b.md', content: '# Title' }],
    ['What time is it?', 'time', {}],
    ['what is the date today', 'time', {}],
    ["what's today's date?", 'time', {}],
    ['time', 'time', {}],
    ['tell me the current time', 'time', {}],
    ['What did I say about the Aardvark adapter?', 'memory_search', { query: 'the Aardvark adapter' }],
    ['search memory for "aardvark"', 'memory_search', { query: 'aardvark' }],
    ['Do you remember anything about Zürich?', 'memory_search', { query: 'Zürich' }],
    ['did we talk about budgets', 'memory_search', { query: 'budgets' }],
    ['run `ls -la`', 'shell', { command: 'ls -la' }],
    ['run git status', 'shell', { command: 'git status' }],
    ['$ echo hi', 'shell', { command: 'echo hi' }],
    ['Execute the command "pwd"', 'shell', { command: 'pwd' }],
    ['fetch https://example.com/a?b=c.', 'http', { url: 'https://example.com/a?b=c' }],
    ['What does https://example.com say?', 'http', { url: 'https://example.com' }],
    ['https://example.com', 'http', { url: 'https://example.com' }],
  ]
  test.each(questions)('%s', (question, name, args) => {
    expect(reply(question).call).toEqual([name, args])
  })

  test('the arguments are named as the tool’s own schema names them', () => {
    expect(reply('find TODO', { tools: [spec('search', ['query', 'directory'], ['query'])] }).call).toEqual([
      'search',
      { query: 'TODO', directory: '.' },
    ])
    expect(reply('list files', { tools: [spec('file_list', [])] }).call).toEqual(['file_list', {}])
  })

  test('the result is shown under a heading', () => {
    expect(reply('What files are in this project?', { after: [result('file_list', 'a.txt\nb.txt')] })).toEqual({
      text: 'These are the files here:\n\na.txt\nb.txt',
      call: undefined,
    })
  })

  test('an empty result is said to be one, a huge one is cut with a count', () => {
    expect(reply('find TODO', { after: [result('search', ' \n')] }).text).toEndWith('(nothing)')
    expect(reply('read a.txt', { after: [result('file_read', 'x'.repeat(20_007))] }).text).toEndWith('(… 7 more characters not shown)')
  })

  test('results that it did not ask for are shown all the same', () => {
    expect(reply('Fix the bug', { after: [result('file_list', 'a'), result('time', 'noon')] }).text).toBe(
      'The tool `file_list` answered:\n\na\n\nThe tool `time` answered:\n\nnoon',
    )
  })
})

describe('knows itself', () => {
  test.each(['Who are you?', 'help', 'What can you do?', 'are you an AI?', 'Which model are you?', 'what is this'])('%s', (question) => {
    const { text } = reply(question)
    expect(text).toContain('no language model')
    expect(text).toContain('file_list')
  })

  test('tools, connecting, greetings and thanks have their answers', () => {
    expect(reply('What tools do you have?').text).toBe(
      'The tools I have here: file_list, file_read, file_write, http, memory_search, search, shell, time.',
    )
    expect(reply('list tools', { tools: [] }).text).toBe('No tools are available to me here.')
    expect(reply('How do I connect a real model?').text).toContain('ANTHROPIC_API_KEY')
    expect(reply('Hello!').text).toStartWith('Hello!')
    expect(reply('thank you').text).toBe('You are welcome.')
  })
})
