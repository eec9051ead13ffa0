import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { shownRequest } from '../../engine/shown-request.ts';
import { questionTexts, summarizeTool } from '../../engine/tool-summary.ts';

/** An unanswered request, as a caller sees it. */
export function actionView(request: OpenRequest, whole: boolean): Record<string, unknown> {
  const { ask, kind } = request;
  const { input, plan, fullChars } = shownRequest(request, whole);
  return {
    type: kind,
    requestId: request.id,
    toolName: ask.toolName,
    input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    summary: requestSummary(request),
    ...(ask.title !== undefined && { title: ask.title }),
    ...(ask.description !== undefined && { description: ask.description }),
    ...(plan !== undefined && { plan }),
    ...(kind === 'user_question' && { questions: input['questions'] }),
    ...(ask.decisionReason !== undefined && { decisionReason: ask.decisionReason }),
    ...(ask.blockedPath !== undefined && { blockedPath: ask.blockedPath }),
    toolUseID: ask.toolUseId,
    ...(ask.agentId !== undefined && { agentID: ask.agentId }),
    ...(ask.suggestions && { suggestions: ask.suggestions }),
    createdAt: new Date(request.createdAt).toISOString(),
    ...(request.expiresAt !== undefined && { expiresAt: new Date(request.expiresAt).toISOString() }),
  };
}

/** Whether a person has a form about it on the screen: the caller may leave it to them. */
export function askedPerson(session: Session, request: OpenRequest): { askedPerson?: true } {
  return session.isAskingPerson(request) ? { askedPerson: true } : {};
}

export function requestSummary({ ask, kind }: OpenRequest): string {
  if (kind === 'user_question') return questionTexts(ask.input).join(' | ') || 'Claude asks a question';
  if (kind === 'plan_review') return 'Claude asks to leave plan mode and start the work';
  const what = summarizeTool(ask.toolName, ask.input);
  return what === '' ? ask.toolName : `${ask.toolName}: ${what}`;
}
