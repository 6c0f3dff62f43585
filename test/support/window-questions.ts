/** Recognises the questions about the window of an unknown model, so that a fake server sees only what it is a fake of. */

const questions = /(?:\/(?:props|api\/show|api\/ps|api\/v0\/models)|^(?:\/v1)?\/models)$/

export function isWindowQuestion(path: string, method: string): boolean {
  return questions.test(path) && (method === 'GET' || path.endsWith('/api/show'))
}

/** @returns the answer of a server that does not know such questions; undefined for another request */
export function unknownQuestion({ url, method }: Pick<Request, 'url' | 'method'>): Response | undefined {
  return isWindowQuestion(new URL(url).pathname, method) ? new Response('not found', { status: 404 }) : undefined
}

/** As `unknownQuestion`, for the bytes of a request. */
export function unknownQuestionIn(bytes: Buffer): string | undefined {
  const [, method = '', path = ''] = /^(\w+) (\S+) HTTP/.exec(bytes.toString('latin1', 0, 2_000)) ?? []
  return isWindowQuestion(path, method) ? 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' : undefined
}
