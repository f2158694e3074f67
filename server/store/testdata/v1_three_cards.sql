-- Added to v1.sql: two more cards, as schema version 1 wrote them. cuda:1 is of cuda:0's class and has a faster
-- incumbent, promoted twice; cuda:2 is of another class.
INSERT INTO devices VALUES(2,'cuda:1');
INSERT INTO devices VALUES(3,'cuda:2');
INSERT INTO dependencies VALUES(2,'nvrtc 13.0','580.1','h200','source 1');
INSERT INTO trials VALUES(4,1,2,1,1,1,1,1,39.0,'operations/2',1800000000123456789);
INSERT INTO trials VALUES(5,1,2,1,2,1,1,1,37.0,'operations/2',1800000000123456789);
INSERT INTO trials VALUES(6,1,2,1,3,1,7,1,1e999,'operations/2',1800000000123456789);
INSERT INTO trials VALUES(7,1,3,1,1,1,1,2,12.0,'operations/3',1800000000123456789);
INSERT INTO trial_bodies SELECT trials.id, message FROM trials, trial_bodies WHERE trials.id > 3 AND trial_id = 1;
INSERT INTO trial_recipes SELECT trials.id, message FROM trials, trial_recipes WHERE trials.id > 3 AND trial_id = 1;
INSERT INTO incumbents VALUES(3,1,2,1,4,1800000001000000000,'operations/2',NULL,'the first',0,NULL,X'');
INSERT INTO incumbents VALUES(4,1,2,1,5,1800000002000000000,'operations/2',3,'5 % faster',1,NULL,X'');
INSERT INTO incumbents VALUES(5,1,3,1,7,1800000003000000000,'operations/3',NULL,'the first',1,NULL,X'');
