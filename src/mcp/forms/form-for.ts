import type { RequestRecord } from '../../schema/events.ts';
import type { Asker, Form, FormAbilities } from './form.ts';
import { permissionForm } from './permission-form.ts';
import { planForm } from './plan-form.ts';
import { questionForm } from './question-form.ts';

export function formFor(asker: Asker, request: RequestRecord, abilities: FormAbilities): Form {
  switch (request.kind) {
    case 'permission':
      return permissionForm(asker, request);
    case 'plan_review':
      return planForm(asker, request);
    case 'user_question':
      return questionForm(asker, request, abilities);
  }
}
